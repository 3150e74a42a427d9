s/rowsum(exp2(x .*));/rowsum(e);/
