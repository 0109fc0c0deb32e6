"""Prints the peak resident memory in bytes before onnxruntime loads a model, and after it ran it five times."""

import sys

import numpy
import onnxruntime


def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


options = onnxruntime.SessionOptions()
options.intra_op_num_threads = int(sys.argv[3])
inputs = dict(numpy.load(sys.argv[2]))
before = peak()
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
for _ in range(5):
    session.run(None, inputs)
print(before, peak())
