s/          put result = 0;/          put result = 0;\n          free x;/
