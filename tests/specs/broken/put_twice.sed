/put x_in/{
N
s/.*\n//
}
