s|take inv_l = stats|take inv_l = stats[g]|
