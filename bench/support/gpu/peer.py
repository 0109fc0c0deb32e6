"""PyTorch's side of bench/gpu.ts: reads lines of JSON with statements and an expression, answers with milliseconds."""

import json
import statistics
import sys
import time

import torch
from torch.nn import functional

torch.backends.cuda.matmul.allow_tf32 = False
torch.manual_seed(1)
ROUNDS, SECONDS, WARM_SECONDS = 7, 0.02, 0.4


def randn(*shape, dtype="float32", grad=False):
    return torch.randn(shape, device="cuda").to(getattr(torch, dtype)).requires_grad_(grad)


def seconds_of(call, count):
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(count):
        call()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / count


def measure(setup, expression):
    names = {"randn": randn, "torch": torch, "functional": functional}
    exec(setup, names)
    code = compile(expression, "expression", "eval")

    def call():
        return eval(code, names)

    start = time.perf_counter()
    while time.perf_counter() - start < WARM_SECONDS:
        seconds_of(call, 20)
    count = max(1, min(1000, int(SECONDS / seconds_of(call, 5))))
    return 1e3 * statistics.median(seconds_of(call, count) for _ in range(ROUNDS))


print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}", flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    print(measure(asked["setup"], asked["expression"]), flush=True)
