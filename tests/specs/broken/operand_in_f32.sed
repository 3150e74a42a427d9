s|: f32\[M, K\]|: dtype[M, K]|
