s|      scale = scale \* 2; put y_out = shape|      put y_out = shape|
