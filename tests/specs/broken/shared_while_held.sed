s/put y_out/put y_out/
s/ over xs//
