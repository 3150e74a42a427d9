1i\use attention;
