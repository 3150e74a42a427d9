s|          for s in t\.step|          for s in t.steps|
