/role write/,$s/take free/take y/
s/= free;/= y;/
s/free free/free y/
