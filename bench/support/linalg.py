"""The PyTorch part of linalg.ts.

Each line on standard input is a case as JSON: the function, files of its float32 operands, and a file for what is
compared. It is prepared and computed once. "run" runs it and prints the milliseconds of a call.
"""

import ctypes
import json
import sys
import time

import torch

FUNCTIONS = {
    "cholesky": torch.linalg.cholesky,
    "luFactor": torch.linalg.lu_factor,
    "qr": torch.linalg.qr,
    "eigh": torch.linalg.eigh,
    "svd": lambda a: torch.linalg.svd(a, full_matrices=False),
    "solve": torch.linalg.solve,
    "inv": torch.linalg.inv,
    "lstsq": torch.linalg.lstsq,
}

# The parts that do not depend on signs and permutations, as in linalg.ts.
COMPARED = {
    "luFactor": lambda result: result[0].triu(),
    "qr": lambda result: result[1].abs(),
    "eigh": lambda result: result[0],
    "svd": lambda result: result[1],
    "lstsq": lambda result: result.solution,
}


def read(path, shape):
    size = torch.Size(shape).numel()
    return torch.from_file(path, size=size, dtype=torch.float32).clone().reshape(shape)


def write(path, x):
    x = x.contiguous()
    with open(path, "wb") as file:
        file.write(ctypes.string_at(x.data_ptr(), x.numel() * 4))


def prepare(function, operands, compared, calls=1):
    inputs = [read(**operand) for operand in operands]
    call = FUNCTIONS[function]
    write(compared, COMPARED.get(function, lambda result: result)(call(*inputs)))

    def run():
        started = time.perf_counter()
        for _ in range(calls):
            call(*inputs)
        return (time.perf_counter() - started) * 1000 / calls

    return run


def main():
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads", flush=True)
    run = None
    for line in sys.stdin:
        if line.strip() != "run":
            run = prepare(**json.loads(line))
            print("ready", flush=True)
            continue
        print(run(), flush=True)


main()
