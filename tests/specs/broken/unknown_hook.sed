s|  maks  (q|  mask  (q|
