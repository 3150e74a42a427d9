/dtype    f16;/d
