s|y_out : yy compute|y_out : ys compute|
