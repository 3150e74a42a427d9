s|store Y = y;|store Y[t.i] = y;|
