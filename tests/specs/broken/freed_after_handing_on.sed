/^        free x;/d
