s/dtype    f32;/dtype    bf16;/
