"""The PyTorch side of peers.ts: each operation as a PyTorch user calls it."""

import ctypes
import sys
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

from side import serve

sys.path.append(str(Path(__file__).parents[3] / "scripts" / "fixtures"))
from gpt import GPT, Sizes  # noqa: E402


def read(file):
    size = torch.Size(file["shape"]).numel()
    x = torch.from_file(file["path"], size=size, dtype=torch.float32).clone().reshape(file["shape"])
    return x.to(getattr(torch, file["dtype"]))


def to_bytes(x):
    x = x.detach().to(torch.float32).contiguous()
    return ctypes.string_at(x.data_ptr(), x.numel() * 4)


def where(a, b):
    condition = a > b
    return lambda: torch.where(condition, a, b)


def attention_backward(q, k, v, cotangent, causal):
    inputs = [x.requires_grad_() for x in (q, k, v)]

    def call():
        out = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return torch.autograd.grad(out, inputs, cotangent)[0]

    return call


def ctc_loss(logits, classes):
    logits.requires_grad_()
    labels = classes + 1
    times, batch = logits.shape[:2]
    lengths = torch.full((batch,), times), torch.full((batch,), labels.shape[1])

    def call():
        loss = F.ctc_loss(logits.log_softmax(2), labels, *lengths)
        torch.autograd.grad(loss, [logits])
        return loss.detach()

    return call


def adam_w(parameter, gradient):
    parameter.requires_grad_().grad = gradient
    optimizer = torch.optim.AdamW([parameter], lr=1e-3, fused=True)

    def call():
        optimizer.step()
        return parameter.detach()

    return call


def training(model, loss_of, lr):
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, fused=True)

    def call():
        loss = loss_of()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return call


def make_mlp(weights):
    model = nn.Sequential(nn.Linear(784, 512), nn.Linear(512, 10))
    model.load_state_dict(weights)
    return model, lambda x: model[1](F.relu(model[0](x)))


def mlp_forward(x, weights):
    _, forward = make_mlp(weights)
    return torch.no_grad()(lambda: forward(x))


def mlp(x, classes, weights):
    model, forward = make_mlp(weights)
    return training(model, lambda: F.cross_entropy(forward(x), classes), 1e-3)


def gpt(tokens, targets, weights, **sizes):
    model = GPT(Sizes(**sizes))
    model.load_state_dict(weights)
    return training(model, lambda: model(tokens, targets), 1e-4)


def plain(function):
    return lambda *operands: lambda: function(*operands)


OPERATIONS = {
    "add": plain(torch.add),
    "exp": plain(torch.exp),
    "gelu": plain(F.gelu),
    "where": where,
    "sum": plain(torch.sum),
    "variance": plain(torch.var),
    "argmax": plain(torch.argmax),
    "softmax": plain(lambda x: torch.softmax(x, -1)),
    "layerNorm": plain(lambda x, weight, bias: F.layer_norm(x, [4096], weight, bias)),
    "crossEntropy": plain(F.cross_entropy),
    "transposedCopy": plain(lambda x: x.T.contiguous()),
    "topk": lambda x, count: lambda: torch.topk(x, count).values,
    "sort": plain(lambda x: torch.sort(x).values),
    "scatterAdd": plain(lambda x, index, source: x.scatter_add(0, index, source)),
    "histogram": plain(lambda x: torch.histogram(x, 100, range=(-4, 4)).hist),
    "ctcLoss": ctc_loss,
    "embedding": plain(lambda weight, indices: F.embedding(indices, weight)),
    "matmul": plain(torch.matmul),
    "attention": lambda q, k, v, causal: lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal),
    "attentionBackward": attention_backward,
    "adamW": adam_w,
    "mlpForward": mlp_forward,
    "mlp": mlp,
    "gpt": gpt,
}


def prepare(case):
    named = {"weights": {file["name"]: read(file) for file in case["weights"]}} if case["weights"] else {}
    return OPERATIONS[case["operation"]](*map(read, case["operands"]), **case["settings"], **named)


serve(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads", prepare, lambda _: None, to_bytes)
