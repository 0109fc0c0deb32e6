/** Tests models that are loaded in half precision or with quantized weights. */
import { describe, expect, test } from "bun:test";
import { io, Tensor, tensor, withBackend } from "../../src/index.ts";
import type { Value } from "../../src/onnx/call.ts";
import { Random } from "../ops/samples.ts";
import { repeats } from "../support/repeats.ts";
import { type NodeCase, readNodeCases } from "./cases.ts";
import { type Field, graph, initializer, message, model, node, tensorInput, text, varint } from "./write.ts";

const numbersIn = (x: Tensor): number[] => Array.from(x.dataSync() as ArrayLike<number>, Number);

/** An attribute of integers. */
const whole = (name: string, value: number): Field => message(5, [text(1, name), varint(3, value), varint(20, 2)]);

/** A node with attributes. */
const nodeWith = (operator: string, inputs: readonly string[], output: string, attributes: readonly Field[]): Field =>
  message(1, [...inputs.map((name) => text(1, name)), text(2, output), text(4, operator), ...attributes]);

const drawn = (random: Random, count: number): number[] => Array.from({ length: count }, () => 2 * random.next() - 1);

/** Cases whose results change entirely with rounded inputs: discontinuous, ill-conditioned or random ones. */
const jumps = new RegExp(
  [
    "large_number",
    "_tan$",
    "bernoulli",
    "dropout",
    "multinomial",
    "random",
    "nonmax",
    "argm",
    "topk",
    "nonzero",
    "unique",
    "cast",
    "quantize",
    "floor",
    "ceil",
    "round",
    "mod",
  ].join("|"),
);

/** Returns a case's inputs and its results in float32, if it has float32 inputs that may be converted. */
async function inFloat32({ name, model: bytes, sets: [first] }: NodeCase) {
  if (jumps.test(name)) return undefined;
  try {
    const loaded = await io.loadOnnx(bytes);
    const given = Object.fromEntries(loaded.inputs.map((input, at) => [input.name, first.inputs[at]?.()]));
    const isFloat = Object.values(given).some((value) => value instanceof Tensor && value.dtype === "float32");
    return isFloat ? { given, expected: await loaded.run(given) } : undefined;
  } catch {
    return undefined; // node.test.ts names the cases that are not supported
  }
}

describe.each(["float16", "bfloat16"] as const)("models stored in %s", (dtype) => {
  test("nodes have the shapes of the float32 model's, and nearly its results", async () => {
    const random = new Random(3);
    const cases = readNodeCases().filter(() => random.next() < repeats({ usual: 0.15, all: 1 }));
    const problems: string[] = [];
    await withBackend("cpu", async () => {
      for (const item of cases) {
        const sound = await inFloat32(item);
        if (!sound) continue;
        const loaded = await io.loadOnnx(item.model, { dtype });
        for (const how of ["node by node", "by a plan"]) {
          const results = await loaded.run(sound.given);
          for (const [name, expected] of Object.entries(sound.expected))
            if (!isNear(results[name], expected)) problems.push(`${item.name}, ${how}: ${name}`);
        }
      }
    });
    expect(cases.length).toBeGreaterThan(100);
    expect(problems).toEqual([]);
  });

  test("weights are converted, and sizes are not", async () => {
    const bytes = model(
      graph({
        nodes: [
          nodeWith("Shape", ["x"], "shape", []),
          nodeWith("Cast", ["shape"], "floats", [whole("to", 1)]),
          node("Mul", ["floats", "half"], ["halves"]),
          nodeWith("Cast", ["halves"], "sizes", [whole("to", 7)]),
          node("Mul", ["x", "weight"], ["scaled"]),
          node("Slice", ["scaled", "zero", "sizes"], ["y"]),
        ],
        initializers: [initializer("half", [1], [0.5]), initializer("weight", [2], [1, 2])],
        inputs: [tensorInput("x", [1030, 2])],
        outputs: [tensorInput("y", ["a", "b"])],
        extra: [message(5, [varint(1, 2), varint(2, 7), text(8, "zero"), varint(7, 0), varint(7, 0)])],
      }),
    );
    const loaded = await io.loadOnnx(bytes, { dtype });
    expect(loaded.weights.get("weight")?.dtype).toBe(dtype);
    const x = tensor(new Float32Array(2060).fill(3), { shape: [1030, 2] });
    const { y } = await loaded.run({ x });
    expect((y as Tensor).describe()).toBe("float32[515, 1]"); // 1030 / 2 = 515, which bfloat16 rounds to 516
    expect(numbersIn(y as Tensor).every((value) => value === 3)).toBe(true);
  });

  test("a model that was read from ONNX trains", async () => {
    const random = new Random(6);
    const nodes = [node("MatMul", ["x", "weight"], ["y"])];
    const bytes = model(
      graph({
        nodes,
        initializers: [initializer("weight", [4, 3], drawn(random, 12))],
        inputs: [tensorInput("x", [2, 4])],
        outputs: [tensorInput("y", [2, 3])],
      }),
    );
    const loaded = await io.loadOnnx(bytes, { dtype });
    const x = tensor([1, 2, 3, 4, 0, 0, 0, 1], { shape: [2, 4], dtype: "float32" });
    const { y } = loaded.forward({ x });
    (y as Tensor).sum().backward();
    const { grad } = loaded.weights.get("weight")!;
    expect(grad?.toArray()).toEqual([1, 2, 3, 5].map((value) => [value, value, value]));
  });
});

/** Allows differences up to 1/16 of the largest value. Elements that should be infinite or NaN are not compared. */
function isNear(actual: Value, expected: Value): boolean {
  if (!(expected instanceof Tensor)) return !(actual instanceof Tensor);
  if (!(actual instanceof Tensor) || actual.describe() !== expected.describe()) return false;
  const [x, y] = [numbersIn(actual), numbersIn(expected)];
  const most = y.filter(Number.isFinite).reduce((result, value) => Math.max(result, Math.abs(value)), 1e-2);
  return y.every((value, at) => !Number.isFinite(value) || Math.abs(x[at] - value) < most / 16);
}

describe("a quantized ONNX model", () => {
  /** A table, a product and a general product: y = (table[ids] · first) · secondᵀ + bias. */
  const network = (random: Random) => {
    const weights = { table: drawn(random, 5 * 32), first: drawn(random, 32 * 64), second: drawn(random, 3 * 64) };
    const content = graph({
      nodes: [
        node("Gather", ["table", "ids"], ["rows"]),
        node("MatMul", ["rows", "first"], ["hidden"]),
        nodeWith("Gemm", ["hidden", "second", "bias"], "y", [whole("transB", 1)]),
      ],
      initializers: [
        initializer("table", [5, 32], weights.table),
        initializer("first", [32, 64], weights.first),
        initializer("second", [3, 64], weights.second),
        initializer("bias", [3], [1, 2, 3]),
      ],
      inputs: [["ids", message(2, [message(1, [varint(1, 7), message(2, [message(1, [varint(1, 4)])])])])]],
      outputs: [tensorInput("y", [4, 3])],
    });
    return { bytes: model(content), weights };
  };

  test.each([
    ["q8_0", 0.03],
    ["q4_0", 0.3],
    [{ bits: 4, groupSize: 32 }, 0.3],
  ] as const)("products and tables in %p agree with the formula", async (quantize, tolerance) => {
    const { bytes, weights } = network(new Random(4));
    const loaded = await io.loadOnnx(bytes, { quantize });
    expect([...loaded.quantizedWeights.keys()].sort()).toEqual(["first", "second", "table"]);
    expect([...loaded.namedParameters().keys()]).toEqual(["weights.bias"]);
    const ids = [0, 4, -1, 2];
    const given = { ids: tensor(ids.map(BigInt), { dtype: "int64" }) };
    const expected = ids.flatMap((id) => {
      const row = weights.table.slice(((id + 5) % 5) * 32, (((id + 5) % 5) + 1) * 32);
      const hidden = Array.from({ length: 64 }, (_, at) =>
        row.reduce((sum, value, index) => sum + value * weights.first[index * 64 + at], 0),
      );
      return [0, 1, 2].map((out) => hidden.reduce((s, v, at) => s + v * weights.second[out * 64 + at], out + 1));
    });
    const most = Math.max(...expected.map(Math.abs));
    for (let run = 0; run < 4; run++) {
      const { y } = await loaded.run(given);
      const worst = numbersIn(y as Tensor).map((value, at) => Math.abs(value - expected[at]) / most);
      expect(Math.max(...worst)).toBeLessThan(tolerance);
    }
  });

  test("matrices whose columns fill no block, and those that other nodes read, are kept", async () => {
    const random = new Random(8);
    const bytes = model(
      graph({
        nodes: [
          node("MatMul", ["x", "narrow"], ["a"]),
          node("MatMul", ["a", "read"], ["b"]),
          node("Add", ["b", "read"], ["y"]),
        ],
        initializers: [
          initializer("narrow", [7, 32], drawn(random, 224)),
          initializer("read", [32, 32], drawn(random, 1024)),
        ],
        inputs: [tensorInput("x", [32, 7])],
        outputs: [tensorInput("y", [32, 32])],
      }),
    );
    const loaded = await io.loadOnnx(bytes, { quantize: "q8_0" });
    expect([...loaded.weights.keys()].sort()).toEqual(["narrow", "read"]);
  });
});
