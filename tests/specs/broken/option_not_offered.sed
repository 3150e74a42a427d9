s|head_dim 96|head_dim 128|
