/^      free x;/d
/put y_out/a\      free x;
