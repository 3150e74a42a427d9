s|headdim  128|head_dim 128|
