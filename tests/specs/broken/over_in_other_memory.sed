s|dtype\[M, N\] over kvs;|dtype[M, N] over s;|
