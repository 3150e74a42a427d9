/take y/{
n
d
}
