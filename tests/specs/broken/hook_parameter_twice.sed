s|score (s, q, q, k)|score (s, q, k)|
