"""What others offer for a shape, through torch. A peer is made by a function that returns its candidates: the same
computation in other layouts. The fastest one that works is what is timed in rounds."""

import contextlib
import inspect
from dataclasses import dataclass
from typing import Callable

import torch
import torch.nn.functional as F

from problems import offsets


@dataclass
class Candidate:
    note: str  # what the CSV file says of it
    run: Callable
    context: Callable = contextlib.nullcontext  # entered around a burst


class Inputs:
    """A shape's packed tensors, [positions, heads, head_dim]; queries that are shared are copied to each sequence,
    since no peer takes them once."""

    def __init__(self, shape, device):
        self.shape = shape
        self.device = device
        generator = torch.Generator(device=device).manual_seed(1)

        def normal(rows, heads):
            return torch.randn(rows, heads, shape.head_dim, device=device, dtype=torch.bfloat16, generator=generator)

        if shape.shares_q:
            self.q = normal(shape.len_q[0], shape.heads).repeat(shape.sequences, 1, 1)
        else:
            self.q = normal(sum(shape.len_q), shape.heads)
        self.k = normal(sum(shape.len_k), shape.kv_heads)
        self.v = normal(sum(shape.len_k), shape.kv_heads)
        self.max_q, self.max_k = max(shape.len_q), max(shape.len_k)

    def offsets(self, lengths):
        return torch.tensor(offsets(lengths), device=self.device, dtype=torch.int32)

    def places(self, lengths):
        """Sequence and position of each row, int32."""
        counts = torch.tensor(lengths, device=self.device)
        sequence = torch.repeat_interleave(torch.arange(len(lengths), device=self.device), counts)
        starts = torch.tensor(offsets(lengths)[:-1], device=self.device)
        position = torch.arange(sum(lengths), device=self.device) - starts[sequence]
        return sequence.int(), position.int()

    def batch(self, packed, lengths):
        """[sequences, longest, heads, head_dim], with zeros behind the shorter ones."""
        longest = max(lengths)
        if min(lengths) == longest:
            return packed.view(len(lengths), longest, *packed.shape[1:])
        out = torch.zeros(len(lengths), longest, *packed.shape[1:], device=self.device, dtype=packed.dtype)
        sequence, position = self.places(lengths)
        out[sequence.long(), position.long()] = packed
        return out

    def batches(self):
        return (
            self.batch(self.q, self.shape.len_q),
            self.batch(self.k, self.shape.len_k),
            self.batch(self.v, self.shape.len_k),
        )


# ---------------------------------------------------------------- scaled_dot_product_attention


def sdpa_candidates(inputs, backend):
    """Positions outside heads in memory (as packed rows are), heads outside positions, and, where the backend takes
    no fewer key heads than query heads, copied heads."""
    from torch.nn.attention import sdpa_kernel

    shape = inputs.shape
    groups = shape.heads // shape.kv_heads

    def candidate(note, tensors, native):
        def run():
            return F.scaled_dot_product_attention(*tensors, is_causal=shape.is_causal, enable_gqa=native)

        return Candidate(note, run, lambda: sdpa_kernel(backend))

    for layout in "bshd", "bhsd":
        views = [tensor.transpose(1, 2) for tensor in inputs.batches()]
        if layout == "bhsd":
            views = [view.contiguous() for view in views]
        yield candidate(layout, views, groups > 1)
        if groups > 1:
            copied = [views[0], *(view.repeat_interleave(groups, dim=1) for view in views[1:])]
            yield candidate(layout + " copied heads", copied, False)
            del copied
        del views


def cudnn(inputs):
    return sdpa_candidates(inputs, torch.nn.attention.SDPBackend.CUDNN_ATTENTION)


def flash2(inputs):
    return sdpa_candidates(inputs, torch.nn.attention.SDPBackend.FLASH_ATTENTION)


# ---------------------------------------------------------------- variable lengths


def varlen2(inputs):
    from torch.nn.attention.varlen import varlen_attn

    shape = inputs.shape
    options = {}
    known = inspect.signature(varlen_attn).parameters  # they differ from version to version
    if shape.is_causal:
        options = {"is_causal": True} if "is_causal" in known else {"window_size": (-1, 0)}
    if shape.heads != shape.kv_heads and "enable_gqa" in known:
        options["enable_gqa"] = True
    arguments = (
        inputs.offsets(shape.len_q),
        inputs.offsets(shape.len_k),
        inputs.max_q,
        inputs.max_k,
    )
    yield Candidate("packed", lambda: varlen_attn(inputs.q, inputs.k, inputs.v, *arguments, **options))


def fa3(inputs):
    import flash_attn_interface

    shape = inputs.shape
    if shape.is_jagged:
        arguments = {
            "cu_seqlens_q": inputs.offsets(shape.len_q),
            "cu_seqlens_k": inputs.offsets(shape.len_k),
            "max_seqlen_q": inputs.max_q,
            "max_seqlen_k": inputs.max_k,
            "causal": shape.is_causal,
        }
        attention = flash_attn_interface.flash_attn_varlen_func
        yield Candidate("packed", lambda: attention(inputs.q, inputs.k, inputs.v, **arguments))
    else:
        tensors = inputs.batches()
        yield Candidate("bshd", lambda: flash_attn_interface.flash_attn_func(*tensors, causal=shape.is_causal))


# ---------------------------------------------------------------- FlexAttention


def document_mask(inputs):
    """Query and key belong to the same sequence; when causal, the key isn't behind the query."""
    shape = inputs.shape
    sequence_q, position_q = inputs.places(shape.len_q)
    sequence_k, position_k = inputs.places(shape.len_k)

    def same(batch, head, q, k):
        return sequence_q[q] == sequence_k[k]

    def same_and_before(batch, head, q, k):
        return (sequence_q[q] == sequence_k[k]) & (position_k[k] <= position_q[q])

    return same_and_before if shape.is_causal else same


def make_block_mask(mask, inputs, rows_q, rows_k):
    # Without compilation, making the mask takes memory for every pair of positions.
    from torch.nn.attention.flex_attention import create_block_mask

    return torch.compile(create_block_mask)(mask, None, None, rows_q, rows_k, device=inputs.device)


def flex(inputs):
    from torch.nn.attention.flex_attention import flex_attention

    shape = inputs.shape
    torch._dynamo.reset()  # what was compiled for another shape would make this one dynamic
    if shape.is_jagged:
        tensors = [tensor.transpose(0, 1).unsqueeze(0).contiguous() for tensor in (inputs.q, inputs.k, inputs.v)]
        mask = make_block_mask(document_mask(inputs), inputs, tensors[0].shape[2], tensors[1].shape[2])
    else:
        tensors = [tensor.transpose(1, 2).contiguous() for tensor in inputs.batches()]
        mask = None
        if shape.is_causal:
            before = lambda batch, head, q, k: k <= q  # noqa: E731
            mask = make_block_mask(before, inputs, inputs.max_q, inputs.max_k)
    compiled = torch.compile(flex_attention, dynamic=False)
    grouped = shape.heads != shape.kv_heads
    yield Candidate("bhsd", lambda: compiled(*tensors, block_mask=mask, enable_gqa=grouped))


# ---------------------------------------------------------------- the table

# By the names that peers.py gives them.
PEERS = {
    "cudnn": cudnn,
    "flash2": flash2,
    "varlen2": varlen2,
    "padded_cudnn": cudnn,
    "flex": flex,
    "fa3": fa3,
}
