/ys compute/s/x_in /y_out/
