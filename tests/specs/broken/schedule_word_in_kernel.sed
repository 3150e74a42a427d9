/smem extra/d
