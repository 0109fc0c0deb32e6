/** Recurrent layers, step by step as the standard writes them. */
import { tupleOf } from "../../core/tuples.ts";
import { tensor } from "../../ops/creation/tensor.ts";
import * as ops from "../../ops/index.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { Call, type Operator, type Operators, Results } from "../call.ts";
import { NodeProblem } from "../errors.ts";
import { codesOf, dequantized } from "./quantized.ts";
import { kernelKind, runKernel } from "./recurrent_kernel.ts";

type Activation = (x: Tensor) => Tensor;

/** One direction of a layer: its weights, and how it reads the sequence. */
interface Direction {
  readonly w: Tensor;
  readonly r: Tensor;
  readonly bias: Tensor | undefined;
  readonly peepholes: Tensor | undefined;
  readonly activations: readonly Activation[];
  readonly clip: (x: Tensor) => Tensor;
  readonly call: Call;
}

/** A layer's state: h, and c for an LSTM. */
type State = readonly Tensor[];
type Step = (x: Tensor, state: State, direction: Direction) => State;

/** Which of the parameters alpha and beta each activation takes from the attributes' lists. */
const parameters: Readonly<Record<string, readonly [alpha: boolean, beta: boolean]>> = {
  affine: [true, true],
  elu: [true, false],
  hardsigmoid: [true, true],
  leakyrelu: [true, false],
  scaledtanh: [true, true],
  thresholdedrelu: [true, false],
};

/** Activations by their names, with the parameters alpha and beta. */
const activations: Readonly<Record<string, (alpha: number | undefined, beta: number | undefined) => Activation>> = {
  affine:
    (alpha = 1, beta = 0) =>
    (x) =>
      ops.add(ops.mul(x, alpha), beta),
  elu:
    (alpha = 1) =>
    (x) =>
      ops.elu(x, { alpha }),
  hardsigmoid:
    (alpha = 0.2, beta = 0.5) =>
    (x) =>
      ops.clamp(ops.add(ops.mul(x, alpha), beta), { min: 0, max: 1 }),
  leakyrelu:
    (alpha = 0.01) =>
    (x) =>
      ops.leakyRelu(x, { negativeSlope: alpha }),
  relu: () => ops.relu,
  scaledtanh:
    (alpha = 1, beta = 1) =>
    (x) =>
      ops.mul(ops.tanh(ops.mul(x, beta)), alpha),
  sigmoid: () => ops.sigmoid,
  softplus: () => (x) => ops.softplus(x),
  softsign: () => ops.softsign,
  tanh: () => ops.tanh,
  thresholdedrelu:
    (alpha = 1) =>
    (x) =>
      ops.where(ops.gt(x, alpha), x, ops.zerosLike(x)),
};

/**
 * Returns the activations of all directions, in the order of the attribute. Each activation takes its parameters from
 * the lists.
 */
function activationsOf(call: Call, names: readonly string[], directions: number): readonly Activation[] {
  const given = call.attributes.texts("activations") ?? Array.from({ length: directions }, () => names).flat();
  const alphas = [...(call.attributes.numbers("activation_alpha") ?? [])];
  const betas = [...(call.attributes.numbers("activation_beta") ?? [])];
  return given.map((name) => {
    const key = name.toLowerCase();
    const make = activations[key];
    if (!make) throw new NodeProblem(`the activation ${name} is not supported`);
    const [hasAlpha, hasBeta] = parameters[key] ?? [false, false];
    return make(hasAlpha ? alphas.shift() : undefined, hasBeta ? betas.shift() : undefined);
  });
}

/**
 * Runs a layer over a sequence, forward, backward or both.
 *
 * @param operator the operation with a fused kernel for the layer; undefined if `step` differs from it
 * @param names of the activations of one direction
 * @param states the number of states
 * @param peepholesAt the index of the input with the peepholes
 */
const recurrent =
  (
    operator: "LSTM" | "GRU" | "RNN" | undefined,
    step: Step,
    names: readonly string[],
    states: number,
    peepholesAt?: number,
  ): Operator =>
  (call) => {
    const kind = operator && kernelKind(call, operator);
    const isBatchFirst = call.attributes.flag("layout");
    const given = call.tensor(0);
    const x = isBatchFirst ? ops.transpose(given, 0, 1) : given;
    const [w, r] = [call.tensor(1), call.tensor(2)];
    const directions = w.shape[0];
    const isReversed =
      call.attributes.choice("direction", ["forward", "reverse", "bidirectional"], "forward") === "reverse";
    const functions = activationsOf(call, names, directions);
    const bound = call.attributes.has("clip") ? call.attributes.number("clip") : undefined;
    const results = Array.from({ length: directions }, (_, at) => {
      const part = (input: number | undefined) => {
        const value = input === undefined ? undefined : call.optional(input);
        return value && ops.select(value, 0, at);
      };
      const direction: Direction = {
        w: ops.select(w, 0, at),
        r: ops.select(r, 0, at),
        bias: part(3),
        peepholes: part(peepholesAt),
        call,
        activations: functions.slice(at * names.length, (at + 1) * names.length),
        clip: bound === undefined ? (value) => value : (value) => ops.clamp(value, { min: -bound, max: bound }),
      };
      const initial = Array.from({ length: states }, (_, state) =>
        initialState(call, state, at, isBatchFirst, [x.shape[1], direction.r.shape[1]], x),
      );
      const backward = isReversed || at === 1;
      const { output, cell } =
        (kind && runKernel(kind, x, direction, initial, { owner: w, at, isReversed: backward })) ?? {};
      if (!output) return runDirection(step, x, initial, direction, backward);
      const last = ops.select(output, 0, backward ? 0 : -1);
      return { all: output, last: cell ? [last, cell] : [last] };
    });
    return resultsOf(results, isBatchFirst);
  };

function initialState(
  call: Call,
  state: number,
  direction: number,
  isBatchFirst: boolean,
  shape: readonly number[],
  x: Tensor,
): Tensor {
  const given = call.optional(5 + state);
  if (!given) return ops.zeros(shape, { dtype: x.dtype });
  return ops.select(given, isBatchFirst ? 1 : 0, direction);
}

interface DirectionResult {
  /** The states of all steps, in a list or stacked. */
  readonly all: readonly Tensor[] | Tensor;
  readonly last: State;
}

/** Rows whose sequence has ended keep their state, and their results are 0. */
function runDirection(
  step: Step,
  x: Tensor,
  initial: State,
  direction: Direction,
  isReversed: boolean,
): DirectionResult {
  const length = x.shape[0];
  const lengths = direction.call.optional(4) ? direction.call.numbers(4) : undefined;
  let state = initial;
  const all: Tensor[] = new Array(length);
  for (let at = 0; at < length; at++) {
    const time = isReversed ? length - 1 - at : at;
    const next = step(ops.select(x, 0, time), state, direction);
    const isActive =
      lengths &&
      tensor(
        lengths.map((each) => time < each),
        { dtype: "bool", shape: [lengths.length, 1] },
      );
    state = isActive ? next.map((value, index) => ops.where(isActive, value, state[index])) : next;
    all[time] = isActive ? ops.where(isActive, next[0], ops.zerosLike(next[0])) : next[0];
  }
  return { all, last: state };
}

/**
 * Returns the states [length, directions, batch, hidden] and the last states; with the batch axis first if the
 * attribute says so.
 */
function resultsOf(results: readonly DirectionResult[], isBatchFirst: boolean): Results {
  const y = ops.stack(
    results.map(({ all }) => (all instanceof Tensor ? all : ops.stack(all, { dim: 0 }))),
    { dim: 1 },
  );
  const last = results[0].last.map((_, state) =>
    ops.stack(
      results.map((each) => each.last[state]),
      { dim: isBatchFirst ? 1 : 0 },
    ),
  );
  return new Results(isBatchFirst ? ops.permute(y, [2, 0, 1, 3]) : y, ...last);
}

const linear = (x: Tensor, w: Tensor): Tensor => ops.matmul(x, ops.transpose(w, 0, 1));

/** The halves of the bias, for the input and for the state. */
function biases({ bias, w }: Direction): readonly [Tensor | undefined, Tensor | undefined] {
  if (!bias) return [undefined, undefined];
  return [ops.narrow(bias, 0, 0, w.shape[0]), ops.narrow(bias, 0, w.shape[0], w.shape[0])];
}

const plus = (x: Tensor, bias: Tensor | undefined): Tensor => (bias ? ops.add(x, bias) : x);

const rnnStep: Step = (x, [h], direction) => {
  const [ofInput, ofState] = biases(direction);
  const sum = ops.add(plus(linear(x, direction.w), ofInput), plus(linear(h, direction.r), ofState));
  return [direction.activations[0](direction.clip(sum))];
};

/** Gates z, r, h. */
const gruStep: Step = (x, [h], direction) => {
  const size = direction.r.shape[1];
  const [ofInput, ofState] = biases(direction);
  const gate = (value: Tensor, at: number) => ops.narrow(value, 1, at * size, size);
  const fromX = plus(linear(x, direction.w), ofInput);
  const fromH = plus(linear(h, direction.r), ofState);
  const [f, g] = tupleOf(direction.activations, 2);
  const z = f(direction.clip(ops.add(gate(fromX, 0), gate(fromH, 0))));
  const r = f(direction.clip(ops.add(gate(fromX, 1), gate(fromH, 1))));
  const hidden = direction.call.attributes.flag("linear_before_reset")
    ? ops.mul(r, gate(fromH, 2))
    : resetBefore(r, h, direction, ofState, size);
  const candidate = g(direction.clip(ops.add(gate(fromX, 2), hidden)));
  return [ops.add(ops.mul(ops.sub(1, z), candidate), ops.mul(z, h))];
};

/** The state is reset before its product with the weights. */
const resetBefore = (r: Tensor, h: Tensor, direction: Direction, bias: Tensor | undefined, size: number): Tensor =>
  plus(linear(ops.mul(r, h), ops.narrow(direction.r, 0, 2 * size, size)), bias && ops.narrow(bias, 0, 2 * size, size));

/** Gates i, o, f, c; peepholes for i, o, f. */
const lstmStep: Step = (x, [h, c], direction) => {
  const size = direction.r.shape[1];
  const [ofInput, ofState] = biases(direction);
  const sums = ops.add(plus(linear(x, direction.w), ofInput), plus(linear(h, direction.r), ofState));
  const gate = (at: number) => ops.narrow(sums, 1, at * size, size);
  const peephole = (value: Tensor, state: Tensor, at: number) =>
    direction.peepholes ? ops.add(value, ops.mul(ops.narrow(direction.peepholes, 0, at * size, size), state)) : value;
  const [f, g, last] = tupleOf(direction.activations, 3);
  const input = f(direction.clip(peephole(gate(0), c, 0)));
  const forget = direction.call.attributes.flag("input_forget")
    ? ops.sub(1, input)
    : f(direction.clip(peephole(gate(2), c, 2)));
  const cell = ops.add(ops.mul(forget, c), ops.mul(input, g(direction.clip(gate(3)))));
  const output = f(direction.clip(peephole(gate(1), cell, 1)));
  return [ops.mul(output, last(cell)), cell];
};

/** Quantizes to bytes and back, as products with quantized weights do. */
function roundedToBytes(x: Tensor): Tensor {
  const { codes, scale, zero } = codesOf(x);
  return dequantized(codes, scale, zero);
}

const quantizedStep = recurrent(
  undefined,
  (x, [h, c], direction) => lstmStep(x, [roundedToBytes(h), c], direction),
  ["Sigmoid", "Tanh", "Tanh"],
  2,
  7,
);

/**
 * DynamicQuantizeLSTM of com.microsoft: weights [directions, inputs, 4 · hidden] have 8 bits. Inputs 8 to 11 are their
 * scales and zero points. Inputs and states are rounded to bytes before each product.
 */
export const dynamicQuantizeLstm: Operator = (call) => {
  const weights = ([1, 2] as const).map((at) => {
    const spread = (input: number) => {
      const value = call.optional(input);
      if (!value || value.size === 1) return value && ops.reshape(value, []);
      return ops.reshape(value, [value.shape[0], 1, value.size / value.shape[0]]);
    };
    const [scale, zero] = [spread(6 + 2 * at), spread(7 + 2 * at)];
    if (!scale) throw new NodeProblem(`input ${6 + 2 * at} is missing`);
    return ops.transpose(dequantized(call.tensor(at), scale, zero), 1, 2);
  });
  const inputs = [roundedToBytes(call.tensor(0)), ...weights, ...call.inputs.slice(3, 8)];
  return quantizedStep(new Call(inputs, call.attributes, call));
};

export const recurrentLayers: Operators = {
  GRU: recurrent("GRU", gruStep, ["Sigmoid", "Tanh"], 1),
  LSTM: recurrent("LSTM", lstmStep, ["Sigmoid", "Tanh", "Tanh"], 2, 7),
  RNN: recurrent("RNN", rnnStep, ["Tanh"], 1),
};
