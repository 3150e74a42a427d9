s/kv/k/g
