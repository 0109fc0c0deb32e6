"""Checks ONNX models, runs them with onnxruntime, and prints the largest relative difference of each as JSON.

Words: a folder with NAME.onnx and NAME.json, which has the inputs and outputs as lists with shapes and types.
"""

import json
import sys
from pathlib import Path

import numpy
import onnx
import onnxruntime

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
options.log_severity_level = 3


def array(value):
    return numpy.array(value["data"], dtype=value["dtype"]).reshape(value["shape"])


def difference(path):
    onnx.checker.check_model(str(path), full_check=True)
    case = json.loads(path.with_suffix(".json").read_text())
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    results = session.run(list(case["outputs"]), {name: array(value) for name, value in case["inputs"].items()})
    worst = 0.0
    for actual, value in zip(results, case["outputs"].values()):
        expected = array(value)
        if actual.shape != expected.shape or actual.dtype != expected.dtype:
            return f"{actual.dtype}{actual.shape} instead of {expected.dtype}{expected.shape}"
        actual, expected = actual.astype("float64"), expected.astype("float64")
        scale = max(1.0, float(numpy.abs(expected).max(initial=0)))
        worst = max(worst, float(numpy.abs(actual - expected).max(initial=0)) / scale)
    return worst


def attempt(path):
    try:
        return difference(path)
    except Exception as error:
        return str(error)


print(json.dumps({path.stem: attempt(path) for path in sorted(Path(sys.argv[1]).glob("*.onnx"))}))
