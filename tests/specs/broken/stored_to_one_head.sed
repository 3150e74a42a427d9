s|M, 0\] = y|M, t.head] = y|
