s|role compute : 2 warps|role compute : 4 warps|
