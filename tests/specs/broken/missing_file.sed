s|use atention;|use attention;|
