s/max(q - k)/max(q, k)/
