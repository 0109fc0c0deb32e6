"""PyTorch's side of attention.ts: a case a line on standard input, as JSON, is prepared; "run" runs it and answers with its milliseconds."""

import json
import sys
import time

import torch
from torch.nn.functional import scaled_dot_product_attention


def prepare(heads, rows, dim, causal, backward, queries=None):
    lengths = (queries or rows, rows, rows)
    inputs = [torch.randn((1, heads, length, dim), requires_grad=backward) for length in lengths]
    cotangent = torch.randn((1, heads, lengths[0], dim))

    def run():
        out = scaled_dot_product_attention(*inputs, is_causal=causal)
        if backward:
            torch.autograd.grad(out, inputs, cotangent)

    return run


def main():
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads", flush=True)
    call = None
    for line in sys.stdin:
        if line.strip() != "run":
            call = prepare(**json.loads(line))
            print("ready", flush=True)
            continue
        started = time.perf_counter()
        call()
        print((time.perf_counter() - started) * 1000, flush=True)


main()
