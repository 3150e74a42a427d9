s/write multicast/write/
