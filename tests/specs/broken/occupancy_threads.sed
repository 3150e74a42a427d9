s/occupancy 16/occupancy 1/
