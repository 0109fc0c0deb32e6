// The side of ONNX Runtime on the CPU for peers.ts, through the npm package onnxruntime-node of a folder: models that
// are made for each case. It answers as side.py does. Words: the folder, and the number of threads.
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { modelOf } from "./onnx.mjs";

const [folder, threads] = process.argv.slice(2);
const { env, InferenceSession, Tensor } = createRequire(join(folder, "package.json"))("onnxruntime-node");

const options = {
  executionProviders: ["cpu"],
  intraOpNumThreads: Number(threads),
  interOpNumThreads: 1,
  graphOptimizationLevel: "all",
  logSeverityLevel: 3,
};

function numbersOf(path) {
  const { buffer, byteOffset, byteLength } = readFileSync(path);
  return new Float32Array(buffer.slice(byteOffset, byteOffset + byteLength));
}

const one = (operator, attributes) => (shapes, outputShape) => ({
  nodes: [{ operator, inputs: shapes.map((_, at) => `x${at}`), output: "y", attributes }],
  outputShape: outputShape(shapes),
});
const likeFirst = ([first]) => first;
const product = ([a, b]) => [...a.slice(0, -1), b.at(-1)];

/** Two layers with the weights of the case: what a trained model is. */
function mlp([x], { weights }) {
  const constants = weights.map(({ name, shape, path }) => ({ name, shape, data: numbersOf(path) }));
  const layer = (at, input, output) => ({
    operator: "Gemm",
    inputs: [input, `${at}.weight`, `${at}.bias`],
    output,
    attributes: { transB: 1 },
  });
  const nodes = [layer(0, "x0", "h"), { operator: "Relu", inputs: ["h"], output: "r" }, layer(1, "r", "y")];
  return { nodes, constants, outputShape: [x[0], 10] };
}

const models = {
  matmul: (shapes) => one("MatMul")(shapes, product),
  softmax: (shapes) => one("Softmax", { axis: shapes[0].length - 1 })(shapes, likeFirst),
  layerNorm: (shapes) => one("LayerNormalization", { axis: shapes[0].length - 1, epsilon: 1e-5 })(shapes, likeFirst),
  mlpForward: mlp,
};

/** A function that runs the case once, or null where there is none for it. */
async function prepare(given) {
  const { operation, operands } = given;
  if (!models[operation] || operands.some(({ dtype }) => dtype !== "float32")) return null;
  const { nodes, constants, outputShape } = models[operation](
    operands.map(({ shape }) => shape),
    given,
  );
  const inputs = operands.map(({ shape }, at) => ({ name: `x${at}`, shape }));
  const bytes = modelOf({ nodes, inputs, constants, output: { name: "y", shape: outputShape } });
  const session = await InferenceSession.create(bytes, options);
  const feeds = operands.map(({ path, shape }, at) => [`x${at}`, new Tensor("float32", numbersOf(path), shape)]);
  return async () => (await session.run(Object.fromEntries(feeds))).y;
}

async function measured(call, count) {
  const started = performance.now();
  for (let done = 0; done < count; done++) await call();
  return (performance.now() - started) / count;
}

console.log(`ONNX Runtime ${env.versions.node}, ${threads} threads`);
let call = null;
for await (const line of createInterface({ input: process.stdin })) {
  if (line.startsWith("run ")) {
    console.log(await measured(call, Number(line.slice(4))));
    continue;
  }
  const given = JSON.parse(line);
  call = await prepare(given);
  if (call) writeFileSync(given.result, new Uint8Array((await call()).data.buffer));
  console.log(call ? "ready" : "missing");
}
