/free x;/{
N
s/.*\n//
}
