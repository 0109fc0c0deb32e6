"""The PyTorch part of convolution.ts.

Each line on standard input is a case as JSON, or "run", which prints the milliseconds of the forward, x's
gradient and the weight's.
"""

import json
import sys
import time

import torch


def timed(compute):
    started = time.perf_counter()
    result = compute()
    return (time.perf_counter() - started) * 1000, result


def prepare(batch, channels, size, outputs, kernel, stride, groups):
    x = torch.randn(batch, channels, size, size, requires_grad=True)
    weight = torch.randn(outputs, channels // groups, kernel, kernel, requires_grad=True)

    def run():
        options = {"padding": (kernel - 1) // 2, "stride": stride, "groups": groups}
        forward, y = timed(lambda: torch.nn.functional.conv2d(x, weight, **options))
        ones = torch.ones_like(y)
        gradients = [timed(lambda: torch.autograd.grad([y], [each], [ones], retain_graph=True)) for each in (x, weight)]
        return [forward, *(taken for taken, _ in gradients)]

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
