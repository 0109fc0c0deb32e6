"""Checks ONNX models, runs them with onnxruntime, and prints the largest relative difference of each as JSON.

Words: a folder with NAME.onnx and NAME.json, which has the inputs and outputs as lists with shapes and types. A model
whose operators onnxruntime lacks for a type, which it says, is run by the standard's reference evaluator.
"""

import json
import sys
from pathlib import Path

import ml_dtypes
import numpy
import onnx
import onnxruntime
from onnx.reference import ReferenceEvaluator

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
options.log_severity_level = 4


def array(value):
    dtype = ml_dtypes.bfloat16 if value["dtype"] == "bfloat16" else value["dtype"]
    data = [float(each) if isinstance(each, str) else each for each in value["data"]]
    return numpy.array(data, dtype=dtype).reshape(value["shape"])


def results_of(path, names, inputs):
    """Returns the results, and who computed them."""
    if all(each.dtype != ml_dtypes.bfloat16 for each in inputs.values()):
        try:
            session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
            return session.run(names, inputs), "onnxruntime"
        except Exception as error:  # Its exceptions have no common base.
            if "NOT_IMPLEMENTED" not in str(error):
                raise
    return ReferenceEvaluator(str(path)).run(names, inputs), "reference"


def difference(path):
    onnx.checker.check_model(str(path), full_check=True)
    case = json.loads(path.with_suffix(".json").read_text())
    inputs = {name: array(value) for name, value in case["inputs"].items()}
    results, runtime = results_of(path, list(case["outputs"]), inputs)
    worst = 0.0
    for actual, value in zip(results, case["outputs"].values()):
        actual, expected = numpy.asarray(actual), array(value)
        if actual.shape != expected.shape or actual.dtype != expected.dtype:
            return f"{actual.dtype}{actual.shape} instead of {expected.dtype}{expected.shape}, {runtime}"
        actual, expected = actual.astype("float64"), expected.astype("float64")
        differs = ~((actual == expected) | (numpy.isnan(actual) & numpy.isnan(expected)))
        if not differs.any():
            continue
        finite = numpy.abs(expected[numpy.isfinite(expected)])
        error = float(numpy.abs(actual - expected)[differs].max()) / max(1.0, float(finite.max(initial=0)))
        worst = max(worst, error if numpy.isfinite(error) else 1e9)
    return [worst, runtime]


def attempt(path):
    try:
        return difference(path)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


print(json.dumps({path.stem: attempt(path) for path in sorted(Path(sys.argv[1]).glob("*.onnx"))}))
