"""The PyTorch and SciPy part of fft.ts.

Each line on standard input is a case as JSON, which is prepared, or "torch" or "scipy", which is timed. The answer is
the milliseconds of the fastest call within the case's time.
"""

import json
import sys
import time

import scipy.fft
import torch

HALVES = {"irfft"}
COMPLEX = {"fft", "ifft", "irfft"}


def prepared(case):
    rows, n, kind = case["rows"], case["n"], case["kind"]
    size = n // 2 + 1 if kind in HALVES else n
    x = torch.randn(rows, size, dtype=torch.complex64 if kind in COMPLEX else torch.float32)
    array = x.numpy()
    return {
        "torch": lambda: getattr(torch.fft, kind)(x, n=n),
        "scipy": lambda: getattr(scipy.fft, kind)(array, n=n, workers=torch.get_num_threads()),
    }


def timed(call, milliseconds):
    best = float("inf")
    call()
    end = time.perf_counter() + milliseconds / 1e3
    while time.perf_counter() < end:
        started = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - started)
    return best * 1e3


calls = {}
milliseconds = 20
for line in sys.stdin:
    words = line.strip()
    if words in calls:
        print(timed(calls[words], milliseconds), flush=True)
    else:
        case = json.loads(words)
        calls, milliseconds = prepared(case), case["milliseconds"]
        print("ready", flush=True)
