"""Small Triton kernels of our own whose PTX the simulator must run: code that another compiler wrote.

    python3 kernels.py OUT_DIR        # needs the `triton` wheel, no GPU

writes one .ptx a kernel and target. The PTX is kept beside this file as test input; test_sim_triton.c runs it."""
import sys
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def row_softmax(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at < n, other=float("-inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * n + at, e / tl.sum(e, 0), mask=at < n)


@triton.jit
def column_sums(x, y, rows, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, rows, ROWS):
        r = first + tl.arange(0, ROWS)
        tile = tl.load(x + r[:, None] * n + at[None, :], mask=(r[:, None] < rows) & (at[None, :] < n), other=0.0)
        total += tl.sum(tile.to(tl.float32), 0)
    tl.store(y + at, total, mask=at < n)


@triton.jit
def integer_mix(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n, other=0)
    r = (v * 1640531527) ^ (v >> 7)
    r = tl.where(v % 3 == 0, r // 5, -r) + tl.abs(v) - (v & 0xFF)
    tl.store(y + at, r, mask=at < n)


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """C = A B with A [M, K], B [K, N] by tensor descriptors (TMA), f16 in, f32 sums, f16 out."""
    da = tl.make_tensor_descriptor(a, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    db = tl.make_tensor_descriptor(b, shape=[K, N], strides=[N, 1], block_shape=[BK, BN])
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(da.load([m, k]), db.load([k, n]), acc)
    rows, cols = m + tl.arange(0, BM), n + tl.arange(0, BN)
    tl.store(c + rows[:, None] * N + cols[None, :], acc.to(tl.float16), mask=(rows[:, None] < M) & (cols[None, :] < N))


@triton.jit
def matmul_pointers(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """The same by pointers: masked loads through registers and shared memory."""
    rows, cols = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        ks = k + tl.arange(0, BK)
        x = tl.load(a + rows[:, None] * K + ks[None, :], mask=(rows[:, None] < M) & (ks[None, :] < K), other=0.0)
        y = tl.load(b + ks[:, None] * N + cols[None, :], mask=(ks[:, None] < K) & (cols[None, :] < N), other=0.0)
        acc = tl.dot(x, y, acc)
    tl.store(c + rows[:, None] * N + cols[None, :], acc.to(tl.float16), mask=(rows[:, None] < M) & (cols[None, :] < N))


KERNELS = [
    (row_softmax, {"x": "*fp32", "y": "*fp32", "n": "i32"}, {"BLOCK": 256}),
    (column_sums, {"x": "*bf16", "y": "*fp32", "rows": "i32", "n": "i32"}, {"ROWS": 16, "BLOCK": 64}),
    (integer_mix, {"x": "*i32", "y": "*i32", "n": "i32"}, {"BLOCK": 512}),
    (matmul, {"a": "*fp16", "b": "*fp16", "c": "*fp16", "M": "i32", "N": "i32", "K": "i32"}, {"BM": 128, "BN": 128, "BK": 64}),
    (matmul_pointers, {"a": "*fp16", "b": "*fp16", "c": "*fp16", "M": "i32", "N": "i32", "K": "i32"}, {"BM": 128, "BN": 64, "BK": 64}),
]


def main(out):
    for target in (100, 90):
        for function, types, constants in KERNELS:
            signature = dict(types, **{name: "constexpr" for name in constants})
            source = ASTSource(function, signature=signature, constexprs=constants)
            kernel = triton.compile(source, target=GPUTarget("cuda", target, 32), options={"num_warps": 4, "num_stages": 2})
            ptx = kernel.asm["ptx"]
            meta = kernel.metadata
            head = f"// {function.__name__} for sm_{target}: {meta.num_warps} warps, {meta.shared} bytes of shared memory, {getattr(meta, 'global_scratch_size', 0)} bytes of scratch a program\n"
            lines = [line for line in ptx.splitlines() if not line.lstrip().startswith((".loc", ".file", "//"))]
            text = "\n".join(lines)
            cut = text.find(".section")
            text = text[:cut] if cut > 0 else text
            open(f"{out}/{function.__name__}_sm{target}.ptx", "w").write(head + text.rstrip() + "\n")
            print(head[3:-1])


if __name__ == "__main__":
    main(sys.argv[1])
