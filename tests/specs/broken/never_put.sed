s/let row = t.i;/put x_in = X[t.i];/
