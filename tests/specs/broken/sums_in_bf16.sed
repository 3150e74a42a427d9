s|tmem acc \[2\]    : dtype\[M, N\]|tmem acc [2]    : f32[M, N]|
