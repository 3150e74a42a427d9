/nothing/d
