s|take x = xin|take x = x_in|
