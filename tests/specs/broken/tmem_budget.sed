s|tmem acc \[5\] |tmem acc [2] |
