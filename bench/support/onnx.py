"""Runs ONNX models with onnxruntime.

For each line with a path, it loads the model. For each line with a file of inputs, it runs the model, writes the
outputs, and answers with the milliseconds of loading. For each line with a count, it runs the model as often, and
answers with the lowest decile of the milliseconds.
"""

import json
import sys
import time

import numpy
import onnxruntime

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = int(sys.argv[1])
options.log_severity_level = 3

session, inputs = None, {}
print("ready", flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    begun = time.perf_counter()
    if "path" in asked:
        session = onnxruntime.InferenceSession(asked["path"], options, providers=["CPUExecutionProvider"])
    if "inputs" in asked:
        answer = {"milliseconds": (time.perf_counter() - begun) * 1e3}
        inputs = dict(numpy.load(asked["inputs"]))
        names = [output.name for output in session.get_outputs()]
        numpy.savez(asked["outputs"], **dict(zip(names, session.run(None, inputs))))
    else:
        times = []
        for _ in range(asked["count"]):
            begun = time.perf_counter()
            session.run(None, inputs)
            times.append((time.perf_counter() - begun) * 1e3)
        answer = {"milliseconds": sorted(times)[len(times) // 10]}
    print(json.dumps(answer), flush=True)
