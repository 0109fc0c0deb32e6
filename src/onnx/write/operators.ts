/** Which primitives can be written, and as which nodes of operator set 17. */
import type { CapturedCall } from "../../backend/capture.ts";
import type { Operands } from "../../core/operands.ts";
import { bytesOf, type DType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { WrittenAttribute } from "./encode.ts";
import { layers } from "./layers.ts";
import { type Recorder, Unwritable } from "./recorder.ts";

/** Adds the nodes of a call, and returns the name of its first result; a list for several results. */
export type Writer = (recorder: Recorder, call: CapturedCall) => string | readonly (string | undefined)[];
export type Writers = Readonly<Record<string, Writer>>;

/** A formula of the names of the operands. */
type Formula = (graph: Formulas, operands: Operands<string>, dtype: DType) => string;

/** Nodes by operator, with constants for numbers. */
class Formulas {
  readonly recorder: Recorder;
  readonly dtype: DType;

  constructor(recorder: Recorder, dtype: DType) {
    this.recorder = recorder;
    this.dtype = dtype;
  }

  of(operator: string, ...operands: readonly (string | number)[]): string {
    const names = operands.map((each) => (typeof each === "number" ? this.recorder.scalar(each, this.dtype) : each));
    return this.recorder.node(operator, names);
  }
}

const formula =
  (compute: Formula): Writer =>
  (recorder, { inputs }) =>
    compute(
      new Formulas(recorder, inputs.at(-1)!.dtype),
      inputs.map((x) => recorder.broadcastName(x)) as readonly string[] as Operands<string>,
      inputs[0].dtype,
    );

/** An operator of the standard with the same meaning and operands. */
const same = (operator: string): Writer => formula((graph, operands) => graph.of(operator, ...operands));

const elementwise: Writers = {
  ...{ abs: same("Abs"), neg: same("Neg"), sign: same("Sign"), floor: same("Floor"), ceil: same("Ceil") },
  ...{ round: same("Round"), relu: same("Relu"), reciprocal: same("Reciprocal"), sqrt: same("Sqrt") },
  ...{ exp: same("Exp"), log: same("Log"), erf: same("Erf"), sigmoid: same("Sigmoid"), softsign: same("Softsign") },
  ...{ sin: same("Sin"), cos: same("Cos"), tan: same("Tan"), asin: same("Asin"), acos: same("Acos") },
  ...{ atan: same("Atan"), sinh: same("Sinh"), cosh: same("Cosh"), tanh: same("Tanh"), asinh: same("Asinh") },
  ...{ acosh: same("Acosh"), atanh: same("Atanh"), hardswish: same("HardSwish"), logicalNot: same("Not") },
  ...{ isnan: same("IsNaN"), isinf: same("IsInf"), add: same("Add"), sub: same("Sub"), mul: same("Mul") },
  ...{ div: same("Div"), pow: same("Pow"), maximum: same("Max"), minimum: same("Min"), eq: same("Equal") },
  ...{ lt: same("Less"), le: same("LessOrEqual"), gt: same("Greater"), ge: same("GreaterOrEqual") },
  ...{ logicalAnd: same("And"), logicalOr: same("Or"), logicalXor: same("Xor"), where: same("Where") },
  ne: formula((graph, [a, b]) => graph.of("Not", graph.of("Equal", a, b))),
  square: formula((graph, [x]) => graph.of("Mul", x, x)),
  rsqrt: formula((graph, [x]) => graph.of("Reciprocal", graph.of("Sqrt", x))),
  exp2: formula((graph, [x]) => graph.of("Pow", 2, x)),
  log1p: formula((graph, [x]) => graph.of("Log", graph.of("Add", x, 1))),
  expm1: formula((graph, [x]) => graph.of("Sub", graph.of("Exp", x), 1)),
  log2: formula((graph, [x]) => graph.of("Div", graph.of("Log", x), Math.LN2)),
  log10: formula((graph, [x]) => graph.of("Div", graph.of("Log", x), Math.LN10)),
  silu: formula((graph, [x]) => graph.of("Mul", x, graph.of("Sigmoid", x))),
  swiglu: formula((graph, [gate, up]) => graph.of("Mul", graph.of("Mul", gate, graph.of("Sigmoid", gate)), up)),
  gelu: formula((graph, [x]) => {
    const twicePhi = graph.of("Add", graph.of("Erf", graph.of("Div", x, Math.SQRT2)), 1);
    return graph.of("Mul", graph.of("Mul", x, twicePhi), 0.5);
  }),
  geluTanh: formula((graph, [x]) => {
    const cube = graph.of("Mul", graph.of("Pow", x, 3), 0.044715);
    const inner = graph.of("Mul", graph.of("Add", x, cube), Math.sqrt(2 / Math.PI));
    return graph.of("Mul", graph.of("Mul", x, 0.5), graph.of("Add", graph.of("Tanh", inner), 1));
  }),
  hardsigmoid: (recorder, { inputs: [x] }) =>
    recorder.node("HardSigmoid", [recorder.name(x)], { alpha: { float: 1 / 6 }, beta: { float: 0.5 } }),
  mish: formula((graph, [x]) => graph.of("Mul", x, graph.of("Tanh", graph.of("Softplus", x)))),
  logSigmoid: formula((graph, [x]) => graph.of("Neg", graph.of("Softplus", graph.of("Neg", x)))),
  tanhshrink: formula((graph, [x]) => graph.of("Sub", x, graph.of("Tanh", x))),
  leaky: formula((graph, [x, slope]) => graph.of("Where", graph.of("Greater", x, 0), x, graph.of("Mul", x, slope))),
  clamp: formula((graph, [x, least, most]) => graph.of("Min", graph.of("Max", x, least), most)),
  lerp: formula((graph, [a, b, w]) => graph.of("Add", a, graph.of("Mul", w, graph.of("Sub", b, a)))),
  softplus: formula((graph, [x, beta]) => graph.of("Div", graph.of("Softplus", graph.of("Mul", x, beta)), beta)),
  elu: formula((graph, [x, alpha, rate]) => {
    const below = graph.of("Mul", alpha, graph.of("Sub", graph.of("Exp", graph.of("Mul", x, rate)), 1));
    return graph.of("Where", graph.of("Greater", x, 0), x, below);
  }),
};

/** The numbers of TensorProto.DataType that Cast has as an attribute. */
const castTypes: Partial<Record<DType, number>> = {
  ...{ float32: 1, uint8: 2, int8: 3, int32: 6, int64: 7, bool: 9, float16: 10, float64: 11, uint32: 12, bfloat16: 16 },
};

const copy: Writer = (recorder, { inputs: [x], outputs: [y] }) => {
  const name = recorder.name(x);
  const cast = x!.dtype === y!.dtype ? name : recorder.node("Cast", [name], { to: castTypes[y!.dtype]! });
  return `${x.shape}` === `${y.shape}` ? cast : recorder.node("Expand", [cast, { sizes: y.shape }]);
};

/** alpha · a · b + beta · input */
const product: Writer = (recorder, { inputs: [a, b, input], attributes }) => {
  const { alpha, beta } = attributes as { alpha: number; beta: number };
  const graph = new Formulas(recorder, a.dtype);
  const all = graph.of("MatMul", recorder.name(a), recorder.name(b));
  const scaled = alpha === 1 ? all : graph.of("Mul", all, alpha);
  if (!input) return scaled;
  const name = recorder.broadcastName(input);
  return graph.of("Add", scaled, beta === 1 ? name : graph.of("Mul", name, beta));
};

const reduction =
  (operator: string, hasAxesInput = false): Writer =>
  (recorder, { inputs: [x], outputs: [y], attributes }) => {
    const { axes } = attributes as { axes: readonly number[] };
    const keepdims = y.rank === x.rank ? 1 : 0;
    if (hasAxesInput) return recorder.node(operator, [recorder.name(x), { sizes: axes }], { keepdims });
    return recorder.node(operator, [recorder.name(x)], { axes, keepdims });
  };

const extremum =
  (operator: string, index: string): Writer =>
  (recorder, { inputs: [x], outputs: [values, indices], attributes }) => {
    const { axes } = attributes as { axes: readonly number[] };
    if (axes.length !== 1) throw new Unwritable("extrema of several axes");
    const keepdims = values.rank === x.rank ? 1 : 0;
    const name = recorder.name(x);
    const places = recorder.node(index, [name], { axis: axes[0]!, keepdims });
    const cast =
      indices?.dtype === "int64" ? places : recorder.node("Cast", [places], { to: castTypes[indices!.dtype]! });
    return [recorder.node(operator, [name], { axes, keepdims }), cast];
  };

const alongAxis =
  (operator: string): Writer =>
  (recorder, { inputs: [x], attributes }) =>
    recorder.node(operator, [recorder.name(x)], { axis: (attributes as { axis: number }).axis });

/** An index that is the same along all other axes, as of an embedding, selects whole slices. */
const gather: Writer = (recorder, { inputs: [x, index], attributes }) => {
  const { dim } = attributes as { dim: number };
  const isSame = index.strides.every((stride, axis) => axis === dim || stride === 0 || index.shape[axis] === 1);
  const isWhole = x.shape.every((size, axis) => axis === dim || size === index.shape[axis]);
  if (!isWhole) throw new Unwritable("gather of a part of x");
  if (!isSame) return recorder.node("GatherElements", [recorder.name(x), recorder.name(index)], { axis: dim });
  const flat = recorder.node("Reshape", [recorder.broadcastName(index!), { sizes: [index!.shape[dim]!] }]);
  return recorder.node("Gather", [recorder.name(x), flat], { axis: dim });
};

const triangle: Writer = (recorder, { inputs: [x], attributes }) => {
  const { lower, diagonal } = attributes as { lower: boolean; diagonal: number };
  const upper: WrittenAttribute = lower ? 0 : 1;
  return recorder.node("Trilu", [recorder.name(x), recorder.numbers([diagonal], [], "int64")], { upper });
};

const cumsum: Writer = (recorder, { inputs, attributes }) => {
  const { axis, reverse } = attributes as { axis: number; reverse: boolean };
  if (inputs.length !== 1) throw new Unwritable("a scan with coefficients");
  const at = recorder.numbers([axis], [], "int64");
  return recorder.node("CumSum", [recorder.name(inputs[0]), at], { reverse: reverse ? 1 : 0 });
};

const writers: Writers = {
  ...elementwise,
  ...layers,
  copy,
  ...{ matmul: product, linear: product, addmm: product },
  ...{ sum: reduction("ReduceSum", true), mean: reduction("ReduceMean"), prod: reduction("ReduceProd") },
  ...{ amax: reduction("ReduceMax"), amin: reduction("ReduceMin"), norm1: reduction("ReduceL1") },
  ...{ norm2: reduction("ReduceL2"), logsumexp: reduction("ReduceLogSumExp") },
  ...{ max: extremum("ReduceMax", "ArgMax"), min: extremum("ReduceMin", "ArgMin") },
  ...{ softmax: alongAxis("Softmax"), logSoftmax: alongAxis("LogSoftmax"), cumsum, gather, triangle },
};

/** The names of the primitives that can be written, sorted. */
export const writableNames = (): string[] => Object.keys(writers).sort();

/** Primitives of random numbers; a file would have the numbers that were drawn once. */
const RANDOM: ReadonlySet<string> = new Set(["bernoulli", "dropout", "multinomial", "random", "randperm"]);

/**
 * Records a call. Calls that do not depend on the inputs are computed, and become constants.
 *
 * @throws {Unwritable}
 */
export function record(recorder: Recorder, call: CapturedCall): void {
  const { primitive, inputs, outputs } = call;
  if (RANDOM.has(primitive)) throw new Unwritable("random numbers");
  const [target] = outputs;
  const isVariable = inputs.some((x) => recorder.isVariable(x));
  if (target && isPart(target)) {
    const isCopied = isVariable || primitive === "copy";
    recorder.write(target, isCopied ? resultsOf(recorder, call)[0]! : filled(recorder, call));
    return;
  }
  if (!isVariable) {
    const value = fillingOf(call);
    if (value !== undefined) recorder.fill(target, value);
    return;
  }
  const names = resultsOf(recorder, call);
  for (const [at, output] of outputs.entries())
    if (names[at] === undefined) recorder.refuse(output, `result ${at + 1} of ${primitive}`);
    else recorder.set(output, names[at]);
}

/** Whether a tensor covers a part of its memory only. */
const isPart = (x: Tensor): boolean => x.offset !== 0 || x.size * bytesOf(x.dtype) < x.storage.memory.byteLength;

/** Returns the number that a call sets all elements to. */
function fillingOf({ primitive, inputs: [source], attributes }: CapturedCall): number | undefined {
  if (primitive === "fill") return Number((attributes as { value: number | boolean | bigint }).value);
  return primitive === "copy" && source.size === 1 ? Number(source.dataSync()[0]) : undefined;
}

function filled(recorder: Recorder, call: CapturedCall): string {
  const [target] = call.outputs;
  const value = fillingOf(call);
  if (value === undefined) throw new Unwritable(`${call.primitive} of a part`);
  return recorder.node("Expand", [recorder.scalar(value, target.dtype), { sizes: target.shape }]);
}

function resultsOf(recorder: Recorder, call: CapturedCall): readonly (string | undefined)[] {
  const write = Object.hasOwn(writers, call.primitive) ? writers[call.primitive] : undefined;
  if (!write) throw new Unwritable(call.primitive);
  const names = write(recorder, call);
  return typeof names === "string" ? [names] : names;
}
