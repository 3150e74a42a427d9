/role load/i\  grid tiles over (i in blocks(m, M)) persistent;
