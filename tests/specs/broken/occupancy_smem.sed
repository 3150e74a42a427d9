s/occupancy 4/occupancy 1/
