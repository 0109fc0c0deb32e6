"""Shared by pytorch.py and mlx.py: cases are lines of JSON on standard input, and answers are lines too.

A case names an operation, its settings, files of float32 numbers (operands, and weights by name), and a file for the
result, which is written once. Then "run N" calls it N times and prints the milliseconds of a call.
"""

import json
import sys
import time
from array import array


def numbers(path):
    values = array("f")
    with open(path, "rb") as file:
        values.frombytes(file.read())
    return values


def serve(title, prepare, wait, to_bytes):
    """prepare: converts a case to a function without arguments, or None if the library lacks the operation."""
    print(title, flush=True)
    call = None
    for line in sys.stdin:
        if line.startswith("run "):
            print(measured(call, wait, int(line[4:])), flush=True)
            continue
        case = json.loads(line)
        call = None  # frees the last case before the next is created
        call = prepare(case)
        if call is not None:
            with open(case["result"], "wb") as file:
                file.write(to_bytes(call()))
        print("missing" if call is None else "ready", flush=True)


def measured(call, wait, count):
    started = time.perf_counter()
    for _ in range(count):
        wait(call())
    return (time.perf_counter() - started) * 1000 / count
