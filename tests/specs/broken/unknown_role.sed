s|x_in  : xs loader  -> compute|x_in  : xs load    -> compute|
