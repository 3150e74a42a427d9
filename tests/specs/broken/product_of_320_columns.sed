s|N = 320|N = 128|
s|STAGES = 2|STAGES = 4|
s|tmem acc \[1\] |tmem acc [2] |
