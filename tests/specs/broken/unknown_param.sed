s|q - k < windows|q - k < window|
