s|smem xs \[STAGES\] : f16|smem xs [STAGES] : dtype|
