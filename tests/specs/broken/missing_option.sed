/dtype/i\  head_dim 128;
