/store Y/a\      free y;
