s|(q, k) = k|(q, k) => k|
