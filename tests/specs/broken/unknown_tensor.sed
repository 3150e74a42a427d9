s|put x_in = x\[t\.i\]|put x_in = X[t.i]|
