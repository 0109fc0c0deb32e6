"""MLX's CPU build for peers.ts: one call per operation. It chooses its number of threads."""

import sys
from importlib.metadata import version
from pathlib import Path

# This file has the package's name, and must not be imported as `mlx`.
sys.path.remove(str(Path(__file__).parent))
import mlx.core as mx  # noqa: E402
import mlx.nn as nn  # noqa: E402
import numpy  # noqa: E402

sys.path.append(str(Path(__file__).parent))
from side import serve  # noqa: E402


def read(file):
    x = mx.array(numpy.fromfile(file["path"], dtype=numpy.float32).reshape(file["shape"]))
    return x.astype(getattr(mx, file["dtype"]))


def to_bytes(x):
    return numpy.array(x.astype(mx.float32)).tobytes()


def attention(q, k, v, causal):
    scale = q.shape[-1] ** -0.5
    return lambda: mx.fast.scaled_dot_product_attention(q, k, v, scale=scale, mask="causal" if causal else None)


def where(a, b):
    condition = a > b
    return lambda: mx.where(condition, a, b)


def plain(function):
    return lambda *operands: lambda: function(*operands)


OPERATIONS = {
    "add": plain(mx.add),
    "exp": plain(mx.exp),
    "gelu": plain(nn.gelu),
    "where": where,
    "sum": plain(mx.sum),
    "variance": plain(lambda x: mx.var(x, ddof=1)),
    "argmax": plain(mx.argmax),
    "softmax": plain(lambda x: mx.softmax(x, -1)),
    "layerNorm": plain(lambda x, weight, bias: mx.fast.layer_norm(x, weight, bias, 1e-5)),
    "crossEntropy": plain(lambda scores, classes: nn.losses.cross_entropy(scores, classes, reduction="mean")),
    "transposedCopy": plain(lambda x: mx.contiguous(x.T)),
    "sort": plain(mx.sort),
    "embedding": plain(lambda weight, indices: weight[indices]),
    "matmul": plain(mx.matmul),
    "attention": attention,
}


def prepare(case):
    make = OPERATIONS.get(case["operation"])
    if make is None:
        return None
    operands = [read(file) for file in case["operands"]]
    mx.eval(operands)
    return make(*operands, **case["settings"])


mx.set_default_device(mx.cpu)
serve(f"MLX {version('mlx')} on the CPU", prepare, mx.eval, to_bytes)
