"""PyTorch's side of bench/compile.ts: each line is a case as JSON, which is prepared; "run" prints milliseconds.

With --compile, functions and losses go through torch.compile, whose C++ compiler is the variable CXX.
"""

import json
import sys
import time
from pathlib import Path

import torch
from torch import nn

sys.path.append(str(Path(__file__).parents[2] / "scripts" / "fixtures"))
from gpt import GPT, Sizes  # noqa: E402


compiled = torch.compile if "--compile" in sys.argv else lambda function: function


def training(model, loss_of):
    loss_of = compiled(loss_of)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step():
        loss_of().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def net(sizes, rows):
    inputs, hidden, outputs = sizes
    model = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, outputs))
    x, y = torch.randn(rows, inputs), torch.randn(rows, outputs)
    return training(model, lambda: (model(x) - y).square().mean())


def gpt(vocabulary, context, layers, heads, width, batch):
    model = GPT(Sizes(vocabulary=vocabulary, context=context, layers=layers, heads=heads, width=width))
    x, y = (torch.randint(0, vocabulary, (batch, context)) for _ in range(2))
    return training(model, lambda: model(x, y))


def chain(elements):
    x, y = torch.randn(elements), torch.randn(elements)
    return lambda: (((x + y) * y + 3).abs() - x).relu().square() + y


def softmax(rows, width):
    x = torch.randn(rows, width)

    def run():
        shifted = (x - x.amax(-1, keepdim=True)).exp()
        return shifted / shifted.sum(-1, keepdim=True)

    return run


def norm(rows, width):
    x, weight, bias = torch.randn(rows, width), torch.randn(width), torch.randn(width)

    def run():
        centered = x - x.mean(-1, keepdim=True)
        return centered * (centered.square().mean(-1, keepdim=True) + 1e-5).rsqrt() * weight + bias

    return run


makers = {"net": net, "gpt": gpt, "chain": chain, "softmax": softmax, "norm": norm}


def main():
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads", flush=True)
    call, calls = None, 1
    for line in sys.stdin:
        if line.strip() != "run":
            given = json.loads(line)
            calls = given["calls"]
            made = makers[given["kind"]](**given["sizes"])
            call = made if given["kind"] in ("net", "gpt") else compiled(made)
            print("ready", flush=True)
            continue
        started = time.perf_counter()
        for _ in range(calls):
            call()
        print((time.perf_counter() - started) * 1000 / calls, flush=True)


main()
