s/let x =/let scale =/
s/shape(x \* x/shape(x * scale/
