s|blocks(k, N / 2)|blocks(k, N)|
