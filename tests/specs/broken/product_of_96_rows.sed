s|M = 96|M = 128|
s|role scale : 3 warps|role scale : 4 warps|
