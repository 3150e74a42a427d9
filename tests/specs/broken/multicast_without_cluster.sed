s/, STAGES = 2;/, STAGES = 2; cluster c in 2;/
