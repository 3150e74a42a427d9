s/occupancy 2; occupancy 2;/occupancy 1;/
