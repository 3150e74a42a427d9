s/A.t.i, s.p.$/&;/
s/smem c .*/&;/
s/dtype bf16$/&;/
