s|role norm :|role compute :|
