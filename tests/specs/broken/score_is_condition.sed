s|s > 0|s * scale - 0.01 * abs(q - k)|
