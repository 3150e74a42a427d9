s/s.index = 0/s.index == 0/
