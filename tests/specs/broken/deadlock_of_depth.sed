s|STAGES = 1|STAGES = head_dim == 64 ? 6 : 3|
