s|store X\[t\.i\] = y;|store Y[t.i] = y;|
