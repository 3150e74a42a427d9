s|A\[t\.m, s\.p\]|A[t.i, s.p]|
