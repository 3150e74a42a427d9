s|BAND = 0|BAND = 64|
