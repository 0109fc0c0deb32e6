"""PyTorch's side of the sweep: cases come as lines of JSON, answers go line by line.

A case has files of its operands' elements, and of a layer's weights by name. The answer is "ready", and the results are
in a file as float64; or "missing" with the reason, where PyTorch has no such call. Then "run N" calls it N times and
prints the milliseconds of a call.
"""

import ctypes
import json
import re
import sys
import time

import torch
from torch.nn import functional

DTYPES = {name: getattr(torch, name) for name in (
    "float32", "float64", "float16", "bfloat16", "int64", "int32", "int8", "uint8", "bool"
)}  # fmt: skip


def read(file):
    count = torch.Size(file["base"]).numel()
    x = torch.from_file(file["path"], size=count, dtype=DTYPES[file["stored"]])
    x = x.to(DTYPES[file["dtype"]], copy=True).reshape(file["base"])
    layout = file["layout"]
    if layout["kind"] == "transposed":
        return x.transpose(*layout["dims"])
    if layout["kind"] == "sliced":
        return x[(slice(None),) * layout["dim"] + (slice(None, None, 2),)]
    return x.expand(file["shape"]) if layout["kind"] == "expanded" else x


def snake_case(name):
    return re.sub(r"(?<=[a-z0-9])[A-Z]", lambda letter: "_" + letter[0].lower(), name)


def to_dtype(x, dtype):
    return x.to(DTYPES[dtype])


def swiglu(gate, up):
    return functional.silu(gate) * up


def add_layer_norm(x, y, weight, bias, normalized_shape):
    total = x + y
    return functional.layer_norm(total, normalized_shape, weight, bias), total


def add_rms_norm(x, y, weight):
    total = x + y
    return functional.rms_norm(total, total.shape[-1:], weight, 1e-6), total


def index_put_value(x, index, value):
    return torch.index_put(x, index, torch.tensor(value, dtype=x.dtype))


def einsum(equation, *operands):
    return torch.einsum(equation, *operands)


#: Functions that PyTorch lacks, composed of operations as PyTorch's users write them.
COMPOSED = {
    function.__name__: function
    for function in (to_dtype, swiglu, add_layer_norm, add_rms_norm, index_put_value, einsum)
}


def found(name):
    """`softmax` is `torch.softmax`, or in `torch.nn.functional`, or in `torch.special`."""
    snake = ".".join(snake_case(part) for part in name.split("."))
    if "." in name:
        module = torch
        for part in name.split("."):
            module = getattr(module, part, None) or getattr(module, snake_case(part))
        return module
    snake = {"log_sigmoid": "logsigmoid"}.get(snake, snake)
    # torch.binary_cross_entropy_with_logits does not average by default
    first = (functional, torch) if "cross_entropy" in snake else (torch, functional)
    for module in (*first, torch.special):
        if hasattr(module, snake):
            return getattr(module, snake)
    return COMPOSED[snake]


def values(argument, operands):
    if isinstance(argument, list):
        return [values(item, operands) for item in argument]
    return operands[argument["operand"]] if isinstance(argument, dict) else argument


def arguments(call, operands):
    options = {
        name if name == "N" else snake_case(name): values(item, operands) for name, item in call["options"].items()
    }
    return [values(item, operands) for item in call["args"]], options


def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in tensors(item)]
    return []


def with_gradients(forward, inputs):
    if not inputs:
        return torch.no_grad()(lambda: tensors(forward()))
    cotangent = None

    def call():
        nonlocal cotangent
        output = tensors(forward())[0]
        cotangent = torch.ones_like(output) if cotangent is None else cotangent
        return [output.detach(), *torch.autograd.grad(output, inputs, cotangent)]

    return call


def operation(case, operands):
    function = COMPOSED.get(snake_case(case["theirs"]["name"])) or found(case["theirs"]["name"])
    inputs = [operands[position].requires_grad_() for position in case["gradients"]]
    args, options = arguments(case["theirs"], operands)
    return with_gradients(lambda: function(*args, **options), inputs)


def layer(case, operands):
    args, options = arguments(case["theirs"], operands)
    made = found(case["theirs"]["name"])(*args, **options)
    made.load_state_dict({file["name"]: read(file) for file in case["weights"]})
    inputs = [operands[position].requires_grad_() for position in case["gradients"]]
    return with_gradients(lambda: made(*operands), [*inputs, *made.parameters()] if inputs else [])


#: Optimizers with a faster form that takes all parameters at once.
FUSED = ("SGD", "Adam", "AdamW", "Adagrad")


def optimizer_of(name, parameters, **options):
    return getattr(torch.optim, name)(parameters, **options, **({"fused": True} if name in FUSED else {}))


def optimizer(case, operands):
    for parameter in operands:
        parameter.requires_grad_().grad = parameter.detach().clone()
    made = optimizer_of(case["theirs"]["name"].split(".")[1], operands, **case["theirs"]["options"])

    def call():
        made.step()
        return [operands[0].detach()]

    return call


def training(case, operands):
    x, classes = operands
    layers = [getattr(torch.nn, name)(*sizes) for name, *sizes in case["theirs"]["args"]]
    model = torch.nn.Sequential(*layers)
    model.load_state_dict({file["name"]: read(file) for file in case["weights"]})
    stepper = optimizer_of(case["theirs"]["options"]["optimizer"], model.parameters(), lr=1e-3)

    def call():
        loss = functional.cross_entropy(model(x), classes)
        stepper.zero_grad(set_to_none=True)
        loss.backward()
        stepper.step()
        return [loss.detach()]

    return call


PREPARATIONS = {"operation": operation, "layer": layer, "optimizer": optimizer, "training": training}


def write(path, compared, results):
    with open(path, "wb") as file:
        for x in [results[compared]] if compared is not None else []:
            x = x.detach().to(torch.float64).contiguous()
            file.write(ctypes.string_at(x.data_ptr(), x.numel() * 8))


def prepare(case):
    call = PREPARATIONS[case["kind"]](case, [read(file) for file in case["operands"]])
    write(case["result"], case["compared"], call())
    return call


#: Clocks by request.
CLOCKS = {"run": time.perf_counter, "processor": time.process_time}


def measured(call, clock, count):
    started = clock()
    for _ in range(count):
        call()
    return (clock() - started) * 1000 / count


def settle():
    """Waits until idle threads sleep: those of OpenMP spin for a while after a call."""
    for _ in range(25):
        before = time.process_time()
        time.sleep(0.008)
        if time.process_time() - before < 0.15 * 0.008:
            return


def main():
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads", flush=True)
    call = None
    for line in sys.stdin:
        request, _, count = line.partition(" ")
        if request in CLOCKS:
            milliseconds = measured(call, CLOCKS[request], int(count))
            if torch.get_num_threads() > 1:
                settle()
            print(milliseconds, flush=True)
            continue
        call = None  # what the last case holds goes before the next is made
        try:
            call = prepare(json.loads(line))
            print("ready", flush=True)
        except Exception as error:  # dtypes and options that PyTorch lacks are many, and its words say which
            message = (str(error).splitlines() or [""])[0][:200]
            print(f"missing {type(error).__name__}: {message}", flush=True)


main()
