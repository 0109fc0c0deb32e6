// Prints the peak resident memory in bytes before onnxruntime-node loads a model, and after it ran it five times. Words:
// a folder with the package, the model's path, its description in onnx_models.ts as JSON, and the number of threads.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const [folder, path, described, threads] = process.argv.slice(2);
const { InferenceSession, Tensor } = createRequire(join(resolve(folder), "package.json"))("onnxruntime-node");
const peak = () => Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync("/proc/self/status", "utf8"))[1]) * 1024;

function inputOf(shape, below) {
  if (!Array.isArray(shape)) return new Tensor("int64", BigInt64Array.from(shape.integers.map(BigInt)), []);
  const count = shape.reduce((product, size) => product * size, 1);
  const draw = () => (below === undefined ? Math.random() - 0.5 : Math.floor(Math.random() * below));
  const values = Array.from({ length: count }, draw);
  return below === undefined
    ? new Tensor("float32", Float32Array.from(values), shape)
    : new Tensor("int32", Int32Array.from(values), shape);
}

const { inputs, below } = JSON.parse(described);
const given = Object.fromEntries(Object.entries(inputs).map(([name, shape]) => [name, inputOf(shape, below)]));
const before = peak();
const options = { intraOpNumThreads: Number(threads), interOpNumThreads: 1, logSeverityLevel: 3 };
const session = await InferenceSession.create(path, options);
for (let at = 0; at < 5; at++) await session.run(given);
console.log(before, peak());
