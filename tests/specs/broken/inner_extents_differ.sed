s|d += x @ y|d += x @ y^T|
