"""The PyTorch part of attention.ts.

Each line on standard input is a case as JSON, which is prepared. "run" runs it and prints the milliseconds.
"""

import json
import sys
import time

import torch
from torch.nn.functional import scaled_dot_product_attention


def draw(heads, rows, dim, queries=None, batch=None):
    """q, k, v and the cotangent: separate tensors, or with a batch views of the rows of one projection."""
    if batch is None:
        return [torch.randn((1, heads, length, dim)) for length in (queries or rows, rows, rows, queries or rows)]
    parts = torch.randn((batch, rows, 3 * heads * dim)).split(heads * dim, -1)
    return [
        part.unflatten(-1, (heads, dim)).transpose(1, 2) for part in (*parts, torch.randn((batch, rows, heads * dim)))
    ]


def prepare(causal, backward, calls=1, **sizes):
    *inputs, cotangent = draw(**sizes)
    inputs = [each.requires_grad_(backward) for each in inputs]

    def run():
        """The milliseconds of a call."""
        started = time.perf_counter()
        for _ in range(calls):
            out = scaled_dot_product_attention(*inputs, is_causal=causal)
            if backward:
                torch.autograd.grad(out, inputs, cotangent)
        return (time.perf_counter() - started) * 1000 / calls

    return run


def main():
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads", flush=True)
    call = None
    for line in sys.stdin:
        if line.strip() != "run":
            call = prepare(**json.loads(line))
            print("ready", flush=True)
            continue
        print(call(), flush=True)


main()
