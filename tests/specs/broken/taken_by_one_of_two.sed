s|y_out : ys compute -> write, load|y_out : ys compute -> write|
