s/rsqrt(x \* x \/ D/rsqrt(rowsum(x * x) \/ D/
