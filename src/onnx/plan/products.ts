/** Fuses matrix products with the steps around them: biases, and attention in the forms that exporters write. */
import * as ops from "../../ops/index.ts";
import type { Call } from "../call.ts";
import { attributesOf } from "../graph.ts";
import { type Edit, madeStep } from "./edit.ts";
import { type Match, match, node, type Pattern, scalarOf, variable } from "./pattern.ts";
import type { PlannedStep } from "./plan.ts";

const [x, weight, bias] = ["x", "weight", "bias"].map(variable) as [Pattern, Pattern, Pattern];
const biased = node("Add", [node("MatMul", [x, weight]), bias]);

const linear = (call: Call) => ops.linear(call.tensor(0), ops.transpose(call.tensor(1), 0, 1), call.tensor(2));

/** A product with a matrix, and a bias for each of its columns. */
function joinBias(edit: Edit, last: PlannedStep, { variables, steps }: Match): void {
  const inputs = ["x", "weight", "bias"].map((name) => variables.get(name)!);
  const [left, matrix, vector] = inputs.map((slot) => edit.slots[slot]);
  const isLinear =
    matrix.isFixed &&
    matrix.shape?.length === 2 &&
    `${vector.shape}` === `${matrix.shape[1]}` &&
    (left.shape?.length ?? 0) > 1 &&
    left.dtype === matrix.dtype &&
    vector.dtype === matrix.dtype;
  if (!isLinear) return;
  const step = madeStep(last, "MatMul", linear, inputs, attributesOf([]));
  edit.replace(
    last,
    steps.filter((each) => each !== last),
    step,
  );
}

const scores = node("MatMul", [variable("q"), variable("k")]);
const scaled: readonly ReturnType<typeof node>[] = [
  scores,
  node("Mul", [scores, variable("factor")]),
  node("Div", [scores, variable("divisor")]),
];
const attentions = scaled.flatMap((each) =>
  [each, node("Add", [each, variable("mask")])].map((all) =>
    node("MatMul", [node("Softmax", [all], isOfLastAxis), variable("v")]),
  ),
);

function isOfLastAxis({ attributes, inputs, opset }: PlannedStep, edit: Edit): boolean {
  const axis = attributes.number("axis", opset < 13 ? 1 : -1);
  return axis === -1 || axis === (edit.slots[inputs[0]].shape?.length ?? 0) - 1;
}

/** The kernel's limit. */
const MOST_WIDTH = 256;

/** The keys are transposed in the product. */
function joinAttention(edit: Edit, last: PlannedStep, { variables, steps }: Match): boolean {
  const slotOf = (name: string) => variables.get(name) ?? -1;
  const [q, k, v] = ["q", "k", "v"].map((name) => edit.slots[slotOf(name)]);
  const shapes = [q, k, v].map(({ shape }) => shape ?? []);
  const isPlain = shapes.every((shape) => shape.length === 4 && `${shape.slice(0, 2)}` === `${shapes[0].slice(0, 2)}`);
  const isSmall = Math.max(shapes[0]?.[3] ?? 0, shapes[2]?.[3] ?? 0) <= MOST_WIDTH;
  const [factor, divisor] = ["factor", "divisor"].map((name) =>
    variables.has(name) ? scalarOf(edit, slotOf(name)) : 1,
  );
  const mask = variables.has("mask") ? edit.slots[slotOf("mask")] : undefined;
  const isTyped = q.dtype === "float32" && (!mask || (mask.dtype === "float32" && (mask.shape?.length ?? 9) <= 4));
  if (!isPlain || !isSmall || !isTyped || factor === undefined || divisor === undefined) return false;
  const scale = factor / divisor;
  const compute = (call: Call) => {
    const options = { scale, ...(call.optional(3) ? { bias: call.tensor(3) } : {}) };
    return ops.flashAttention(call.tensor(0), ops.transpose(call.tensor(1), 2, 3), call.tensor(2), options);
  };
  const inputs = ["q", "k", "v", "mask"].map(slotOf);
  edit.replace(
    last,
    steps.filter((each) => each !== last),
    madeStep(last, "Attention", compute, inputs, attributesOf([])),
  );
  return true;
}

/** Fuses products with their biases, and the products around a softmax into attention. */
export function fuseProducts(edit: Edit): void {
  for (const step of edit.steps()) {
    const isAttention = attentions.some((pattern) => {
      const found = match(edit, step, pattern);
      return found !== undefined && joinAttention(edit, step, found);
    });
    const found = isAttention ? undefined : match(edit, step, biased);
    if (found) joinBias(edit, step, found);
  }
}
