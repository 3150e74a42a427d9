s/cluster c in 3/cluster c in 4/
