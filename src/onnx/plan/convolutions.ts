/**
 * Fuses convolutions with the padding before them, and with the bias, normalization, activation and scale after them.
 */
import { lastElement } from "../../core/collections.ts";
import { type Finish, finished, noFinish } from "../../ops/convolution/finish.ts";
import * as ops from "../../ops/index.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { Call } from "../call.ts";
import { numbersOf } from "../call.ts";
import { attributesOf } from "../graph.ts";
import { convolve, convolveFew } from "../operators/windows.ts";
import { type Edit, madeStep } from "./edit.ts";
import { scalarOf } from "./pattern.ts";
import { NO_SLOT, type PlannedStep } from "./plan.ts";

/** A convolution with steps after it: z = f(conv(x, weight) + bias + added) · scale + shift. */
interface Joined {
  readonly edit: Edit;
  readonly convolution: PlannedStep;
  readonly steps: PlannedStep[];
  weight: number;
  bias: number;
  added: number;
  finish: Finish;
  /** Whether an activation or a scale was fused. The weights can't be changed after that. */
  isLinear: boolean;
}

/** Fuses convolutions with the steps around them. */
export function fuseConvolutions(edit: Edit): void {
  for (const step of edit.steps()) if (step.operator === "Pad") joinPadding(edit, step);
  for (const step of edit.steps()) if (step.operator === "Conv") joinFollowing(edit, step);
}

/** Zeros of a Pad become the padding of the convolution. */
function joinPadding(edit: Edit, pad: PlannedStep): void {
  const next = edit.onlyUser(pad.outputs[0]);
  const sizes = edit.fixed(pad.inputs[1]);
  if (next?.operator !== "Conv" || next.inputs[0] !== pad.outputs[0] || !sizes || pad.inputs[3] !== undefined) return;
  if (pad.attributes.text("mode", "constant") !== "constant") return;
  if (next.attributes.text("auto_pad", "NOTSET") !== "NOTSET") return;
  if ((pad.inputs[2] ?? NO_SLOT) !== NO_SLOT && scalarOf(edit, pad.inputs[2]) !== 0) return;
  const list = numbersOf(sizes);
  const rank = list.length / 2;
  const [before, after] = [list.slice(0, rank), list.slice(rank)];
  if (list.some((size) => size < 0) || [...before.slice(0, 2), ...after.slice(0, 2)].some((size) => size > 0)) return;
  const spatial = [...before.slice(2), ...after.slice(2)];
  const pads = (next.attributes.numbers("pads") ?? spatial.map(() => 0)).map((size, at) => size + spatial[at]);
  const attributes = attributesOf([...next.attributes.entries(), ["pads", pads] as const]);
  edit.replace(next, [pad], { ...next, attributes, inputs: [pad.inputs[0], ...next.inputs.slice(1)] });
}

function joinFollowing(edit: Edit, convolution: PlannedStep): void {
  const dtype = edit.slots[convolution.outputs[0]]?.dtype;
  if (dtype !== "float32" && dtype !== "float64") return;
  const joined: Joined = {
    edit,
    convolution,
    steps: [convolution],
    weight: convolution.inputs[1],
    added: NO_SLOT,
    bias: convolution.inputs[2] ?? NO_SLOT,
    finish: noFinish,
    isLinear: true,
  };
  for (;;) {
    const last = lastElement(joined.steps);
    const next = edit.onlyUser(last.outputs[0]);
    if (next?.outputs.length !== 1 || !joiners[next.operator]?.(joined, next, last.outputs[0])) break;
    joined.steps.push(next);
  }
  const { finish, weight, bias, added, steps } = joined;
  const compute = (call: Call): Tensor => finished(convolved(call), call.optional(2), call.optional(3), finish);
  const inputs = [convolution.inputs[0], weight, bias, added];
  const step = madeStep(lastElement(steps), "Conv", compute, inputs, convolution.attributes);
  edit.replace(lastElement(steps), steps.slice(0, -1), step);
}

const convolved = (call: Call): Tensor => {
  const [x, weight] = [call.tensor(0), call.tensor(1)];
  return convolveFew(call, x, weight) ?? convolve(call, x, weight);
};

/** Tries to fuse a step that uses `value`. */
type Join = (joined: Joined, step: PlannedStep, value: number) => boolean;

const active =
  (finish: (step: PlannedStep, edit: Edit) => Partial<Finish> | undefined): Join =>
  (joined, step) => {
    const part = joined.finish.activation === "none" && joined.finish === noFinish && finish(step, joined.edit);
    if (!part) return false;
    joined.finish = { ...joined.finish, ...part };
    joined.isLinear = false;
    return true;
  };

function clipOf({ inputs, attributes, opset }: PlannedStep, edit: Edit): Partial<Finish> | undefined {
  const bound = (at: number, name: string, none: number): number | undefined => {
    if (opset < 11) return attributes.number(name, none);
    return (inputs[at] ?? NO_SLOT) === NO_SLOT ? none : scalarOf(edit, inputs[at]);
  };
  const [alpha, beta] = [bound(1, "min", -Infinity), bound(2, "max", Infinity)];
  return alpha === undefined || beta === undefined ? undefined : { activation: "clamp", alpha, beta };
}

/** x ↦ a x + b by channel, folded into weight and bias. */
function fold(
  joined: Joined,
  factor: Tensor | undefined,
  shift: Tensor | undefined,
  sources: readonly number[],
): boolean {
  const { edit } = joined;
  const [weight, bias] = [edit.fixed(joined.weight), edit.fixed(joined.bias)];
  if (!joined.isLinear || joined.added !== NO_SLOT || !weight || (joined.bias !== NO_SLOT && !bias)) return false;
  const from = [joined.weight, joined.bias, ...sources].filter((slot) => slot !== NO_SLOT);
  if (factor) {
    const perRow = ops.reshape(factor, [-1, ...weight.shape.slice(1).map(() => 1)]);
    joined.weight = edit.fix(ops.mul(weight, perRow).to(weight.dtype), from);
  }
  const scaled = bias && factor ? ops.mul(bias, factor) : bias;
  const sum = scaled && shift ? ops.add(scaled, shift) : (scaled ?? shift);
  if (sum) joined.bias = edit.fix(ops.clone(ops.expand(sum, [weight.shape[0]])).to(weight.dtype), from);
  return true;
}

/** Returns a fixed operand that has one element, or one for each channel, as a vector. */
function perChannel({ edit, convolution }: Joined, slot: number): Tensor | undefined {
  const tensor = edit.fixed(slot);
  const { shape, dtype } = edit.slots[convolution.outputs[0]];
  if (!tensor || !shape || tensor.dtype !== dtype || tensor.rank > shape.length) return undefined;
  const aligned = [...new Array<number>(shape.length - tensor.rank).fill(1), ...tensor.shape];
  const isPlain = aligned.every((size, axis) => size === 1 || (axis === 1 && size === shape[1]));
  return isPlain ? ops.reshape(tensor, [-1]) : undefined;
}

/** The operand besides `value`; undefined if both are `value`. */
const otherOf = ({ inputs }: PlannedStep, value: number): number | undefined => {
  const others = inputs.filter((slot) => slot !== value);
  return others.length === 1 ? others[0] : undefined;
};

const multiplied: Join = (joined, step, value) => {
  const other = otherOf(step, value);
  if (other === undefined || (step.operator === "Div" && step.inputs[0] !== value)) return false;
  const factor = perChannel(joined, other);
  if (!factor) return false;
  const isDivision = step.operator === "Div";
  if (joined.isLinear && fold(joined, isDivision ? ops.reciprocal(factor) : factor, undefined, [other])) return true;
  const scalar = scalarOf(joined.edit, other);
  if (scalar === undefined || joined.isLinear) return false;
  const by = isDivision ? 1 / scalar : scalar;
  joined.finish = { ...joined.finish, scale: joined.finish.scale * by, shift: joined.finish.shift * by };
  return true;
};

const summed: Join = (joined, step, value) => {
  const other = otherOf(step, value);
  const { edit } = joined;
  if (other === undefined || (step.operator === "Sub" && step.inputs[0] !== value)) return false;
  const sign = step.operator === "Sub" ? -1 : 1;
  const shift = perChannel(joined, other);
  if (shift && joined.isLinear && fold(joined, undefined, sign < 0 ? ops.neg(shift) : shift, [other])) return true;
  const scalar = scalarOf(edit, other);
  if (scalar !== undefined && !joined.isLinear) {
    joined.finish = { ...joined.finish, shift: joined.finish.shift + sign * scalar };
    return true;
  }
  const [mine, others] = [edit.slots[value], edit.slots[other]];
  const isSame = `${mine.shape}` === `${others.shape}` && mine.dtype === others.dtype;
  if (!joined.isLinear || joined.added !== NO_SLOT || sign < 0 || !isSame) return false;
  joined.added = other;
  return true;
};

/** A maximum or minimum with a number, after the convolution, a Relu or another bound. */
const bounded: Join = (joined, step, value) => {
  const other = otherOf(step, value);
  const bound = other !== undefined && perChannel(joined, other) ? scalarOf(joined.edit, other) : undefined;
  const { activation, alpha, beta, scale, shift } = joined.finish;
  if (bound === undefined || Number.isNaN(bound) || scale !== 1 || shift !== 0) return false;
  const ranges: Partial<Record<Finish["activation"], readonly [number, number]>> = {
    none: [-Infinity, Infinity],
    relu: [0, Infinity],
    clamp: [alpha, beta],
  };
  const pick = step.operator === "Max" ? Math.max : Math.min;
  const range = ranges[activation]?.map((each) => pick(each, bound));
  if (!range) return false;
  joined.finish = { ...joined.finish, activation: "clamp", alpha: range[0], beta: range[1] };
  joined.isLinear = false;
  return true;
};

/** y = γ (x − mean) / √(variance + ε) + β */
const normalized: Join = (joined, { inputs, attributes }) => {
  const { edit } = joined;
  const operands = inputs.slice(1, 5).map((slot) => edit.fixed(slot));
  if (attributes.flag("training_mode") || operands.some((each) => each?.dtype !== edit.fixed(joined.weight)?.dtype))
    return false;
  const [gamma, beta, mean, variance] = operands as [Tensor, Tensor, Tensor, Tensor];
  const factor = ops.div(gamma, ops.sqrt(ops.add(variance, attributes.number("epsilon", 1e-5))));
  return fold(joined, factor, ops.sub(beta, ops.mul(mean, factor)), inputs.slice(1, 5));
};

const joiners: Readonly<Record<string, Join>> = {
  Add: summed,
  Sub: summed,
  Mul: multiplied,
  Div: multiplied,
  BatchNormalization: normalized,
  Clip: active(clipOf),
  HardSigmoid: active(({ attributes }) => ({
    activation: "hardsigmoid",
    alpha: attributes.number("alpha", 0.2),
    beta: attributes.number("beta", 0.5),
  })),
  HardSwish: active(() => ({ activation: "hardswish" })),
  Max: bounded,
  Min: bounded,
  LeakyRelu: active(({ attributes }) => ({ activation: "leaky", alpha: attributes.number("alpha", 0.01) })),
  Relu: active(() => ({ activation: "relu" })),
  Sigmoid: active(() => ({ activation: "sigmoid" })),
  Swish: active(({ attributes }) => (attributes.number("alpha", 1) === 1 ? { activation: "silu" } : undefined)),
};
