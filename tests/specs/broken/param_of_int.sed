s|window : int = 512|window : i32 = 512|
