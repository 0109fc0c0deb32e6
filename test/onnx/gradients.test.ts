/** Gradients through ONNX nodes, by finite differences in float64: drawn from the node tests of smooth operators. */
import { expect, test } from "bun:test";
import { withBackend } from "../../src/backend/policy.ts";
import { gradcheck, io, Tensor } from "../../src/index.ts";
import type { Value } from "../../src/onnx/call.ts";
import { Random } from "../ops/samples.ts";
import { repeats } from "../support/repeats.ts";
import { type NodeCase, readNodeCases } from "./cases.ts";

/** Families whose results are smooth in their floating inputs at the tests' points. */
const smooth = new RegExp(
  `^test_(?:${[
    "attention_4d_(?:scaled|gqa|softcap)",
    "averagepool_[123]d",
    "conv_",
    "convtranspose",
    "einsum",
    "gather_elements",
    "gelu",
    "gemm_",
    "globalaveragepool",
    "group_normalization",
    "gru_",
    "hardswish",
    "instancenorm",
    "layer_normalization",
    "logsoftmax",
    "lstm_",
    "matmul",
    "mish",
    "reduce_log_sum_exp",
    "resize_.*_(?:linear|cubic)",
    "rms_normalization",
    "rotary_embedding",
    "scatter_elements",
    "sigmoid",
    "simple_rnn",
    "softmax_",
    "tanh",
    "where_example",
  ].join("|")})`,
);
/** Names of unsuitable cases: other dtypes, cropping, and inputs that select elements. */
const unsuited = /_expanded|bf16|fp16|int|uint|resize_tf|peephole/;

/** The maximum number of elements of an input whose elements are varied one at a time. */
const MOST = 150;

const hasSmallInput = ({ sets: [first] }: NodeCase): boolean =>
  first.inputs.some((read) => {
    const value = read();
    return value instanceof Tensor && value.dtype === "float32" && value.size > 0 && value.size <= MOST;
  });

const cases = readNodeCases().filter(
  (item) => smooth.test(item.name) && !unsuited.test(item.name) && hasSmallInput(item),
);

test("gradients of operators agree with finite differences", async () => {
  const random = new Random(9);
  const families = Map.groupBy(cases, ({ name }) => smooth.exec(name)![0]);
  const problems: string[] = [];
  for (const list of families.values())
    for (let at = 0; at < repeats({ usual: 1, all: 4 }); at++) {
      const item = list[Math.floor(random.next() * list.length)];
      const problem = await withBackend("reference", () => problemOf(item));
      if (problem !== undefined) problems.push(`${item.name}: ${problem}`);
    }
  expect(families.size).toBeGreaterThan(20);
  expect(problems).toEqual([]);
});

/** Inputs that are sizes, although they are floats. */
const sizes = new Set(["scales", "roi"]);

/** Nodes compute in the dtype of their inputs, so that the differences can be small in float64. */
async function problemOf({ model: bytes, sets: [first] }: NodeCase): Promise<string | undefined> {
  const model = await io.loadOnnx(bytes);
  const given = model.inputs.map(({ name }, at) => {
    const value = first.inputs[at]?.();
    return [name, value instanceof Tensor && value.dtype === "float32" ? value.to("float64") : value] as const;
  });
  const isVaried = (name: string, value: Value): value is Tensor =>
    value instanceof Tensor && value.dtype === "float64" && value.size > 0 && value.size <= MOST && !sizes.has(name);
  const varied = given.flatMap(([name, value]) => (isVaried(name, value) ? [[name, leafOf(value)] as const] : []));
  const names = varied.map(([name]) => name);
  const result = (...values: readonly Tensor[]): Tensor => {
    const changed = names.map((name, at) => [name, values[at]] as const);
    const outputs = model.forward(Object.fromEntries([...given, ...changed]));
    return outputs[model.outputs[0].name] as Tensor;
  };
  try {
    gradcheck(
      result,
      varied.map(([, leaf]) => leaf),
    );
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

function leafOf(x: Tensor): Tensor {
  const leaf = x.clone();
  leaf.requiresGrad = true;
  return leaf;
}
