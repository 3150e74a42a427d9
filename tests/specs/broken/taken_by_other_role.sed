s|take y = x_in|take y = y_out|
