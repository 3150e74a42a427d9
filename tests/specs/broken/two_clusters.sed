s/cluster d in 2;//
