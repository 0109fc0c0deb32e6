"""The PyTorch part of convolution.ts.

Each line on standard input is a case as JSON, or "run", which prints the milliseconds of a forward and a backward.
"""

import json
import sys
import time

import torch


def prepare(channels, size, outputs, kernel, stride, groups):
    x = torch.randn(8, channels, size, size, requires_grad=True)
    weight = torch.randn(outputs, channels // groups, kernel, kernel, requires_grad=True)

    def run():
        started = time.perf_counter()
        y = torch.nn.functional.conv2d(x, weight, padding=(kernel - 1) // 2, stride=stride, groups=groups)
        forward = time.perf_counter() - started
        ones = torch.ones_like(y)
        started = time.perf_counter()
        torch.autograd.grad([y], [x, weight], [ones])
        return [forward * 1000, (time.perf_counter() - started) * 1000]

    return run


def main():
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads", flush=True)
    run = None
    for line in sys.stdin:
        if line.strip() != "run":
            run = prepare(**json.loads(line))
            print("ready", flush=True)
            continue
        print(json.dumps(run()), flush=True)


main()
