s|head / 2.0|head|
