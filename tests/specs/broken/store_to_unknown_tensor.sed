s|store Z\[t\.i\] = y;|store Y[t.i] = y;|
