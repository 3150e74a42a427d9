s|d += (2 \* x) @ y\^T|d += x @ y^T|
