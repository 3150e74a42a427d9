s/xs .STAGES :/xs [STAGES] :/
s/put x_in X/put x_in = X/
s/free x$/free x;/
s/dtype = bf16/dtype bf16/
