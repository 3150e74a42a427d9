s|rsqr(rowsum|rsqrt(rowsum|
