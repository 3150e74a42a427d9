s/      for s in t.steps { put a_in = A.t.i, s.p.; }/      for s in t.steps {\n        put a_in = A[t.i, s.p];/
s/      for s in t.steps { put b_in = B.t.j, s.p.; }/        put b_in = B[t.j, s.p];\n      }/
