/^          take x = a_in;/d
/take y = b_in;/i\            take x = a_in;
