s|role scale : 4 warps, 168 regs|role scale : 4 warps|
