s/occupancy 0/occupancy 1/
