"""The shapes of bench/attention/shapes.csv for Python; bench/attention/shapes.c reads the same file in the same way."""

import csv
import fnmatch
import os
from dataclasses import dataclass
from itertools import accumulate

COLUMNS = ["name", "mask", "head_dim", "heads", "kv_heads", "sequences", "len_q", "len_k", "queries"]
WORD = (1 << 64) - 1


def mix(x):
    """A number of 64 bits that looks random: the steps of SplitMix64."""
    x = (x + 0x9E3779B97F4A7C15) & WORD
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & WORD
    return x ^ (x >> 31)


@dataclass
class Shape:
    name: str
    is_causal: bool
    head_dim: int
    heads: int
    kv_heads: int
    len_q: list
    len_k: list
    shares_q: bool

    @property
    def mask(self):
        return "causal" if self.is_causal else "dense"

    @property
    def sequences(self):
        return len(self.len_q)

    @property
    def is_jagged(self):
        return self.shares_q or len(set(self.len_q)) > 1 or len(set(self.len_k)) > 1

    @property
    def flop(self):
        """4 len_q len_k heads head_dim, summed over sequences; half of it when causal."""
        pairs = sum(q * k for q, k in zip(self.len_q, self.len_k))
        return 4 * pairs * self.heads * self.head_dim / (2 if self.is_causal else 1)

    def tflops(self, milliseconds):
        return self.flop / milliseconds / 1e9

    def describe(self):
        """The line that `bench_attention --list` prints."""
        return f"{self.name},{self.sequences},{sum(self.len_q)},{sum(self.len_k)},{self.flop / 1e9:.3f}"


def offsets(lengths):
    return [0, *accumulate(lengths)]


def make_lengths(spec, sequences, folder):
    if spec.startswith("uniform:"):
        low, high, seed = (int(part) for part in spec.split(":")[1:])
        return [low + ((mix((seed << 32) + s) >> 32) * (high - low + 1) >> 32) for s in range(sequences)]
    if not spec.startswith("file:"):
        return [int(spec)] * sequences
    path, _, factor = spec.removeprefix("file:").partition(":")
    with open(os.path.join(folder, path), encoding="utf-8") as file:
        lengths = [int(line) * int(factor or 1) for line in file if line.strip() and not line.startswith("#")]
    if len(lengths) != sequences:
        raise ValueError(f"{path} has {len(lengths)} lengths, not one for each of {sequences} sequences")
    return lengths


def read_shapes(path, only=()):
    folder = os.path.dirname(path)
    with open(path, encoding="utf-8", newline="") as file:
        rows = csv.DictReader(line for line in file if line.strip() and not line.startswith("#"))
        if rows.fieldnames != COLUMNS:
            raise ValueError(f"{path} has the columns {rows.fieldnames}, not {COLUMNS}")
        shapes = []
        for row in rows:
            if only and not any(fnmatch.fnmatchcase(row["name"], pattern) for pattern in only):
                continue
            count = int(row["sequences"])
            shapes.append(
                Shape(
                    name=row["name"],
                    is_causal=row["mask"] == "causal",
                    head_dim=int(row["head_dim"]),
                    heads=int(row["heads"]),
                    kv_heads=int(row["kv_heads"]),
                    len_q=make_lengths(row["len_q"], count, folder),
                    len_k=make_lengths(row["len_k"] or row["len_q"], count, folder),
                    shares_q=row["queries"] == "shared",
                )
            )
    return shapes
