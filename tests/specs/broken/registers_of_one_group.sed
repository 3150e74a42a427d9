s|role store : 1 warp, 72 regs|role store : 1 warp, OTHER_REGS regs|
