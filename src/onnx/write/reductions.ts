/** Writers of reductions, running results, softmax, and cross entropy. */
import type { CrossEntropyAttributes } from "../../ops/loss/primitive.ts";
import type { ReductionAttributes } from "../../ops/reduction/primitive.ts";
import type { ScanAttributes } from "../../ops/scan/primitive.ts";
import { type DType, isFloat } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { Formulas } from "./formulas.ts";
import type { Recorder } from "./recorder.ts";
import { Unwritable } from "./unwritable.ts";
import type { Writer, Writers } from "./writer.ts";

type Axes = Pick<ReductionAttributes, "axes">;

/** Reduces the elements of a name. */
type Fold = (graph: Formulas, name: string, attributes: ReductionAttributes, axes: AxesOfNode) => string;

/** The operands and attributes of a node that reduces axes. */
interface AxesOfNode {
  readonly axes: readonly number[];
  readonly keepdims: number;
}

const reduced = (graph: Formulas, operator: string, x: string, { axes, keepdims }: AxesOfNode): string =>
  graph.with({ keepdims }, operator, x, { sizes: axes });

const fold =
  (compute: Fold): Writer =>
  (recorder, { inputs: [x], outputs: [y], attributes }) => {
    const given = attributes as ReductionAttributes;
    const graph = new Formulas(recorder, x.dtype);
    return compute(graph, recorder.name(x), given, { axes: given.axes, keepdims: y.rank === x.rank ? 1 : 0 });
  };

const reduction = (operator: string): Writer => fold((graph, x, _, axes) => reduced(graph, operator, x, axes));

/** A sum or product, of the result's dtype. */
const accumulation =
  (operator: string): Writer =>
  (recorder, { inputs: [x], outputs: [y], attributes }) => {
    const graph = new Formulas(recorder, y.dtype);
    const name = x.dtype === y.dtype ? recorder.name(x) : graph.cast(recorder.name(x), y.dtype);
    const { axes } = attributes as Axes;
    return reduced(graph, operator, name, { axes, keepdims: y.rank === x.rank ? 1 : 0 });
  };

/** The maximum or minimum. Dtypes that runtimes do not reduce are compared as wider integers. */
const extremumOf =
  (operator: string): Writer =>
  (recorder, { inputs: [x], outputs: [y], attributes }) => {
    const graph = new Formulas(recorder, x.dtype);
    const { axes } = attributes as Axes;
    const given = { axes, keepdims: y.rank === x.rank ? 1 : 0 };
    const kept = comparable(x.dtype);
    if (kept === x.dtype) return reduced(graph, operator, recorder.name(x), given);
    return graph.cast(reduced(graph, operator, graph.cast(recorder.name(x), kept), given), y.dtype);
  };

/** Whether all elements are nonzero, or any. */
const logic =
  (operator: string): Writer =>
  (recorder, { inputs: [x], outputs: [y], attributes }) => {
    const graph = new Formulas(recorder, x.dtype);
    const name = recorder.name(x);
    const flags = graph.cast(x.dtype === "bool" ? name : graph.cast(name, "bool"), "int32");
    const { axes } = attributes as Axes;
    return graph.cast(reduced(graph, operator, flags, { axes, keepdims: y.rank === x.rank ? 1 : 0 }), "bool");
  };

/** Σ (x − mean)² / (n − correction) */
const variance =
  (finish: (graph: Formulas, value: string) => string): Writer =>
  (recorder, { inputs: [x], outputs: [y], attributes }) => {
    const { axes, parameter } = attributes as ReductionAttributes;
    const graph = new Formulas(recorder, x.dtype);
    const name = recorder.name(x);
    const centered = graph.of("Sub", name, reduced(graph, "ReduceMean", name, { axes, keepdims: 1 }));
    const squares = graph.of("Mul", centered, centered);
    const sum = reduced(graph, "ReduceSum", squares, { axes, keepdims: 1 });
    const count = graph.cast({ sizes: [axes.reduce((size, axis) => size * x.shape[axis], 1)] }, x.dtype);
    const value = graph.of("Div", sum, graph.of("Max", graph.of("Sub", count, parameter), 0));
    return finish(graph, graph.reshape(value, y.shape));
  };

/** (Σ |x|ᵖ)^(1/p) */
const normP: Fold = (graph, x, { parameter }, axes) => {
  const powers = graph.of("Pow", graph.of("Abs", x), parameter);
  return graph.of("Pow", reduced(graph, "ReduceSum", powers, axes), 1 / parameter);
};

const nansum: Fold = (graph, x, _, axes) =>
  reduced(graph, "ReduceSum", graph.of("Where", graph.of("IsNaN", x), 0, x), axes);

const nancount: Fold = (graph, x, _, axes) => {
  const isNumber = graph.of("Not", graph.of("IsNaN", x));
  return reduced(graph, "ReduceSum", graph.cast(isNumber, graph.dtype), axes);
};

/** An extremum in which NaN counts as `least`; NaN where all elements are NaN. */
const extremumOfNumbers =
  (name: "ReduceMax" | "ReduceMin", least: number): Fold =>
  (graph, x, _, axes) => {
    const isNone = graph.of("IsNaN", x);
    const isAllNone = reduced(graph, "ReduceMin", graph.cast(isNone, graph.dtype), axes);
    const result = reduced(graph, name, graph.of("Where", isNone, least, x), axes);
    return graph.where(graph.of("Equal", isAllNone, 1), Number.NaN, result);
  };

const norm0: Fold = (graph, x, _, axes) => {
  const isNonzero = graph.of("Not", graph.of("Equal", x, 0));
  return reduced(graph, "ReduceSum", graph.cast(isNonzero, graph.dtype), axes);
};

/** Restores the axes of size 1 of a reduction of all elements. */
const finished = (graph: Formulas, name: string, isFlat: boolean, { shape }: Tensor): string =>
  isFlat ? graph.reshape(name, shape) : name;

/** A dtype for which runtimes compute extrema. */
const comparable = (dtype: DType): DType => (dtype === "bool" ? "int32" : dtype === "uint32" ? "int64" : dtype);

const extremum =
  (operator: string, index: string): Writer =>
  (recorder, { inputs: [x], outputs: [values, indices], attributes }) => {
    const { axes } = attributes as Axes;
    const isFlat = axes.length !== 1;
    if (isFlat && axes.length !== x.rank) throw new Unwritable("extrema of some of the axes, with their indices");
    const graph = new Formulas(recorder, x.dtype);
    const kept = comparable(x.dtype);
    const whole = isFlat ? graph.reshape(recorder.name(x), [x.size]) : recorder.name(x);
    const name = kept === x.dtype ? whole : graph.cast(whole, kept);
    const along = { axes: isFlat ? [0] : axes, keepdims: values.rank === x.rank ? 1 : 0 };
    const places = graph.with({ axis: along.axes[0], keepdims: along.keepdims }, index, name);
    const result = reduced(graph, operator, name, along);
    return [
      finished(graph, kept === x.dtype ? result : graph.cast(result, x.dtype), isFlat, values),
      finished(graph, indices?.dtype === "int64" ? places : graph.cast(places, indices.dtype), isFlat, values),
    ];
  };

const alongAxis =
  (operator: string): Writer =>
  (recorder, { inputs: [x], attributes }) =>
    recorder.node(operator, [recorder.name(x)], { axis: (attributes as { axis: number }).axis });

const cumsum: Writer = (recorder, { inputs, attributes }) => {
  const { axis, reverse } = attributes as ScanAttributes;
  if (inputs.length !== 1) throw new Unwritable("a scan with coefficients");
  const at = recorder.numbers([axis], [], "int64");
  return recorder.node("CumSum", [recorder.name(inputs[0]), at], { reverse: reverse ? 1 : 0 });
};

/** Combines each element with all earlier ones along an axis, in log₂ n steps. */
function running<Names extends readonly [string, ...string[]]>(
  recorder: Recorder,
  {
    shape,
    axis,
    isReversed,
  }: { readonly shape: readonly number[]; readonly axis: number; readonly isReversed: boolean },
  start: Names,
  combine: (later: Names, earlier: Names) => Names,
): Names {
  const size = shape[axis];
  let names = start;
  const part = (from: number, to: number): Names =>
    names.map((name) =>
      recorder.node("Slice", [name, { sizes: [from] }, { sizes: [to] }, recorder.numbers([axis], [1], "int64")]),
    ) as unknown as Names;
  for (let step = 1; step < size; step *= 2) {
    const [low, high] = [part(0, size - step), part(step, size)];
    const combined = isReversed ? combine(low, high) : combine(high, low);
    const rest = isReversed ? part(size - step, size) : part(0, step);
    names = names.map((_, at) =>
      recorder.node("Concat", isReversed ? [combined[at], rest[at]] : [rest[at], combined[at]], { axis }),
    ) as unknown as Names;
  }
  return names;
}

const cumprod: Writer = (recorder, { inputs: [x], attributes }) => {
  const { axis, reverse } = attributes as ScanAttributes;
  const graph = new Formulas(recorder, x.dtype);
  const along = { shape: x.shape, axis, isReversed: reverse };
  return running<[string]>(recorder, along, [recorder.name(x)], ([a], [b]) => [graph.of("Mul", a, b)])[0];
};

/** Selects the last of equal elements, or the first NaN. */
const runningExtremum: Writer = (recorder, { inputs: [x], attributes }) => {
  const { axis, isMinimum } = attributes as { axis: number; isMinimum: boolean };
  const graph = new Formulas(recorder, x.dtype);
  const size = x.shape[axis];
  const numbers = recorder.numbers(
    Array.from({ length: size }, (_, at) => at),
    x.shape.map((_, at) => (at === axis ? size : 1)),
    "int64",
  );
  const places = recorder.node("Expand", [numbers, { sizes: x.shape }]);
  const along = { shape: x.shape, axis, isReversed: false };
  return running<[string, string]>(
    recorder,
    along,
    [recorder.name(x), places],
    ([later, laterPlace], [earlier, earlierPlace]) => {
      const isBetter = graph.of(isMinimum ? "LessOrEqual" : "GreaterOrEqual", later, earlier);
      const stays = isFloat(x.dtype) ? orNan(graph, isBetter, later, earlier) : isBetter;
      return [graph.where(stays, later, earlier), graph.where(stays, laterPlace, earlierPlace)];
    },
  );
};

const orNan = (graph: Formulas, isBetter: string, later: string, earlier: string): string =>
  graph.of("And", graph.of("Or", isBetter, graph.of("IsNaN", later)), graph.of("Not", graph.of("IsNaN", earlier)));

/** (1 − ε) w[y] (−log p[y]) + ε / classes · Σ w[c] (−log p[c]), and w[y]; 0 for ignored targets. */
const crossEntropy: Writer = (recorder, { inputs, outputs: [losses, used], attributes }) => {
  const { axis, ignoreIndex, labelSmoothing } = attributes as CrossEntropyAttributes;
  const [logits, targets, factors] = inputs as unknown as [Tensor, Tensor, Tensor | undefined];
  const graph = new Formulas(recorder, logits.dtype);
  const classes = logits.shape[axis];
  const ignored = recorder.scalar(ignoreIndex, targets.dtype);
  const isIgnored = graph.of("Equal", recorder.name(targets), ignored);
  const target = graph.where(isIgnored, recorder.scalar(0, targets.dtype), recorder.name(targets));
  const costs = graph.of("Neg", graph.with({ axis }, "LogSoftmax", recorder.name(logits)));
  const places = graph.of("Unsqueeze", target, { sizes: [axis] });
  const chosen = graph.of("Squeeze", graph.with({ axis }, "GatherElements", costs, places), { sizes: [axis] });
  const weight = factors ? graph.with({ axis: 0 }, "Gather", recorder.name(factors), target) : undefined;
  let value = weight === undefined ? chosen : graph.of("Mul", weight, chosen);
  if (labelSmoothing > 0) {
    const shape = logits.shape.map((_, at) => (at === axis ? classes : 1));
    const weighted = factors ? graph.of("Mul", costs, graph.reshape(recorder.name(factors), shape)) : costs;
    const sum = reduced(graph, "ReduceSum", weighted, { axes: [axis], keepdims: 0 });
    const smooth = graph.of("Mul", sum, labelSmoothing / classes);
    value = graph.of("Add", graph.of("Mul", value, 1 - labelSmoothing), smooth);
  }
  const kept = (name: string | number, dtype: DType): string => {
    const result = graph.where(isIgnored, 0, name);
    return dtype === logits.dtype ? result : graph.cast(result, dtype);
  };
  return [kept(value, losses.dtype), kept(weight ?? 1, used.dtype)];
};

export const reductions: Writers = {
  sum: accumulation("ReduceSum"),
  prod: accumulation("ReduceProd"),
  mean: accumulation("ReduceMean"),
  amax: extremumOf("ReduceMax"),
  amin: extremumOf("ReduceMin"),
  all: logic("ReduceMin"),
  any: logic("ReduceMax"),
  norm1: reduction("ReduceL1"),
  norm2: reduction("ReduceL2"),
  logsumexp: reduction("ReduceLogSumExp"),
  nansum: fold(nansum),
  nancount: fold(nancount),
  nanmax: fold(extremumOfNumbers("ReduceMax", -Infinity)),
  nanmin: fold(extremumOfNumbers("ReduceMin", Infinity)),
  norm0: fold(norm0),
  normP: fold(normP),
  normInf: fold((graph, x, _, axes) => reduced(graph, "ReduceMax", graph.of("Abs", x), axes)),
  normNegInf: fold((graph, x, _, axes) => reduced(graph, "ReduceMin", graph.of("Abs", x), axes)),
  var: variance((_, value) => value),
  std: variance((graph, value) => graph.of("Sqrt", value)),
  max: extremum("ReduceMax", "ArgMax"),
  min: extremum("ReduceMin", "ArgMin"),
  softmax: alongAxis("Softmax"),
  logSoftmax: alongAxis("LogSoftmax"),
  cumsum,
  cumprod,
  runningExtremum,
  crossEntropy,
};
