s|s \* scale - rowmax(q)|s * scale - 0.01 * abs(q - k)|
