s|k - q|k <= q \&\& q - k < window|
