s|(0.01;|0.01;|
s|bend(x) = x / LARGEST|bend(x) => x / 30|
s|windov|window|
