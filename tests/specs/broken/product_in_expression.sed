s|let scale = rsqrt(rowsum(x @ x)|let scale = rsqrt(rowsum(x * x)|
