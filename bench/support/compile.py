"""PyTorch's side of bench/compile.ts: each line is a case as JSON, which is prepared; "run" prints milliseconds.

With --compile, functions and losses go through torch.compile, whose C++ compiler is the variable CXX.
"""

import json
import sys
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

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


def chain(elements, operations):
    x, y = torch.randn(elements), torch.randn(elements)
    steps = [
        *(lambda v: v + y, lambda v: v * y, lambda v: v + 3, lambda v: v.abs(), lambda v: v - x),
        *(lambda v: v.relu(), lambda v: v.square(), lambda v: v + y, lambda v: v * 0.5, lambda v: v - y),
    ][:operations]

    def run():
        value = x
        for step in steps:
            value = step(value)
        return value

    return run


def decode(vocabulary, context, layers, heads, width):
    """A token of a GPT. Keys and values of earlier tokens are in tensors of the context's length."""
    model = GPT(Sizes(vocabulary=vocabulary, context=context, layers=layers, heads=heads, width=width)).eval()
    shape = (1, heads, context, width // heads)
    caches = [(torch.randn(shape), torch.randn(shape)) for _ in range(layers)]
    token = torch.randint(0, vocabulary, (1, 1))

    def step(position):
        x = model.tokenEmbedding(token) + model.positionEmbedding.weight[position]
        for block, (keys, values) in zip(model.blocks, caches):
            parts = block.attention.queryKeyValue(block.attentionNorm(x)).split(width, dim=2)
            q, k, v = (part.view(1, 1, heads, -1).transpose(1, 2) for part in parts)
            keys[:, :, position : position + 1] = k
            values[:, :, position : position + 1] = v
            seen = slice(0, position + 1)
            attended = F.scaled_dot_product_attention(q, keys[:, :, seen], values[:, :, seen])
            x = x + block.attention.output(attended.transpose(1, 2).reshape(1, 1, width))
            x = x + block.feedForward(block.feedForwardNorm(x))
        return F.linear(model.finalNorm(x), model.tokenEmbedding.weight)

    own, position = compiled(step), context // 2

    def run():
        nonlocal position
        with torch.no_grad():
            own(position)
        position = context // 2 if position + 1 == context else position + 1

    return run


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


makers = {"net": net, "gpt": gpt, "chain": chain, "softmax": softmax, "norm": norm, "decode": decode}


def main():
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads", flush=True)
    call, calls = None, 1
    for line in sys.stdin:
        if line.strip() != "run":
            given = json.loads(line)
            calls = given["calls"]
            made = makers[given["kind"]](**given["sizes"])
            call = made if given["kind"] in ("net", "gpt", "decode") else compiled(made)
            print("ready", flush=True)
            continue
        started = time.perf_counter()
        for _ in range(calls):
            call()
        print((time.perf_counter() - started) * 1000 / calls, flush=True)


main()
