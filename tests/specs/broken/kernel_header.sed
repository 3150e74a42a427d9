s|kernel windowed attention|kernel windowed : attention|
