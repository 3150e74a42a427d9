/tmem p /{
N
s/\(.*\)\n\(.*\) over p;/\2;\n\1/
s/dtype.M, N./& over s/
}
