/take y = b_in/a\            d += x @ y^T fresh if s.first;
