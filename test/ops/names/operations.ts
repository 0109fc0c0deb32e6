/** The names of operations on elements, rows and slices. */
import { executeMany, executeUpdate } from "../../../src/backend/dispatch.ts";
import { loadedPrimitives } from "../../../src/backend/primitive.ts";
import { embeddingBag, flashAttention, grad, manualSeed, nn, noGrad, type Tensor, tensor } from "../../../src/index.ts";
import { definitions } from "../../../src/ops/elementwise/define.ts";
import { binaryOperations, ternaryOperations, unaryOperations } from "../../../src/ops/elementwise/primitive.ts";
import { bagModes } from "../../../src/ops/embedding/primitive.ts";
import { scatterings } from "../../../src/ops/indexing/primitive.ts";
import { losses } from "../../../src/ops/loss/primitive.ts";
import { derivatives, reductions } from "../../../src/ops/reduction/primitive.ts";
import { scans } from "../../../src/ops/scan/primitive.ts";
import { softmaxes } from "../../../src/ops/softmax/primitive.ts";
import { noCoefficients, type RuleName, ruleState, updateRules } from "../../../src/optim/rules.ts";
import { updatePrimitive } from "../../../src/optim/update.ts";
import type { DType } from "../../../src/tensor/dtype.ts";
import { drawn, numbersOf, run, shaped, variable, type Walk } from "./walk.ts";

const elementwise = (name: string, operands: readonly Tensor[]): Tensor => definitions.get(name)!.compute(...operands);

const special = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0, -0, 3, -2];
const mixed = [0, 1, 2, 3, 1, 2, -1.5, 2.5, -3, 4, 0.5, 0];
const orders = [1, 2, 3, 4, 5]; // for polygamma
const divisors = [3, -2, 5, 1, -4, 2];
const repeated = (values: readonly number[], dtype: DType = "float32"): Tensor =>
  shaped(
    [60],
    Array.from({ length: 60 }, (_, at) => values[at % values.length]),
    dtype,
  );
const bools = (label: string): Tensor => drawn(label, [16], { integers: [0, 1] }, "bool");
const bothBools = () => [shaped([4], [0, 0, 1, 1], "bool"), shaped([4], [0, 1, 0, 1], "bool")];

export const unary: readonly Walk[] = [
  {
    names: unaryOperations.groups.floats,
    operands: () => [drawn("unary", [96], { low: -4, high: 4 })],
    compute: elementwise,
  },
  {
    names: unaryOperations.groups.integers,
    operands: () => [drawn("unary", [40], { integers: [-9, 9] }, "int32")],
    compute: elementwise,
    same: [["floor", "ceil", "round", "trunc"]],
    unchanged: ["floor", "ceil", "round", "trunc"],
  },
  {
    names: unaryOperations.groups.bools,
    operands: () => [bools("unary")],
    compute: elementwise,
    unchanged: ["sign"],
  },
  { names: unaryOperations.groups.tests, operands: () => [shaped([7], special)], compute: elementwise },
];

const withNaN = (x: Tensor): Tensor => shaped(x.shape, numbersOf(x).with(0, Number.NaN), x.dtype as "float32");

export const binary: readonly Walk[] = [
  {
    names: binaryOperations.groups.floats,
    // Only a NaN distinguishes maximum from fmax.
    operands: () => [repeated(mixed), withNaN(drawn("binary", [60], { low: -4, high: 4 })), repeated(orders)],
    compute: (name, [a, b, order]) =>
      name === "timesPowerOfTwo"
        ? elementwise(name, [b, order]) // the exponents of powers are whole numbers
        : elementwise(name, [name === "polygamma" ? order : a, b]),
  },
  {
    names: binaryOperations.groups.integers,
    operands: () => [drawn("a", [60], { integers: [-20, 20] }, "int32"), repeated(divisors, "int32")],
    compute: elementwise,
    same: [
      ["maximum", "fmax"],
      ["minimum", "fmin"],
    ],
  },
  {
    names: binaryOperations.groups.bools,
    operands: bothBools,
    compute: elementwise,
    same: [
      ["add", "maximum", "fmax", "heaviside", "bitwiseOr"],
      ["mul", "minimum", "fmin", "bitwiseAnd"],
    ],
  },
  {
    names: binaryOperations.groups.tests,
    operands: () => [shaped([6], [0, 1, 2, 2, 0, 3]), shaped([6], [0, 1, 0, 5, 1, 2])],
    compute: elementwise,
  },
];

const clamped = () => [
  drawn("x", [40], { low: -3, high: 3 }),
  drawn("low", [40], { low: -2, high: 0 }),
  drawn("high", [40], { low: 0.2, high: 2 }),
];

export const ternary: readonly Walk[] = [
  { names: ternaryOperations.groups.floats, operands: clamped, compute: elementwise },
  {
    names: ternaryOperations.groups.integers,
    operands: () => [
      drawn("x", [40], { integers: [-9, 9] }, "int32"),
      drawn("low", [40], { integers: [-4, 0] }, "int32"),
      drawn("high", [40], { integers: [1, 5] }, "int32"),
    ],
    compute: elementwise,
  },
  {
    names: ternaryOperations.groups.choices,
    operands: () => [bools("where"), drawn("b", [16], { low: -2, high: 0 }), drawn("c", [16], { low: 1, high: 2 })],
    compute: elementwise,
  },
];

/** Rows: of zeros, with one 0, and without. */
const rows = (dtype: "float32" | "int32"): Tensor[] => {
  const values = dtype === "float32" ? { low: -3, high: 2 } : { integers: [2, 5] as const };
  const elements = numbersOf(drawn("rows", [5, 9], values, dtype));
  return [shaped([5, 9], elements.with(9, 0).fill(0, 0, 9), dtype)];
};
const parameters: Readonly<Record<string, number>> = { normP: 3, var: 1, std: 1 };
const wholeResults: Readonly<Record<string, "int64" | "bool">> = {
  sum: "int64",
  prod: "int64",
  all: "bool",
  any: "bool",
};
const reduced = (name: string, [x]: readonly Tensor[]): Tensor => {
  const isTruth = name === "all" || name === "any";
  const dtype = isTruth || x.dtype === "int32" ? (wholeResults[name] ?? x.dtype) : x.dtype;
  return run(name, [x], [5], dtype, { axes: [1], parameter: parameters[name] ?? 0 });
};

export const reduction: readonly Walk[] = [
  {
    names: reductions.groups.folds,
    operands: () => rows("float32"),
    compute: reduced,
    same: [
      ["sum", "nansum"],
      ["amax", "nanmax"],
      ["amin", "nanmin"],
    ],
  },
  {
    names: ["sum", "nansum", "nancount", "nanmax", "nanmin"],
    operands: () => [shaped([5, 4], [Number.NaN, ...numbersOf(drawn("numbers", [19], { low: 1, high: 3 }))])],
    compute: reduced,
  },
  { names: reductions.groups.integers, operands: () => rows("int32"), compute: reduced },
  {
    names: reductions.groups.extrema,
    operands: () => rows("float32"),
    compute: (name, [x]) =>
      executeMany(
        loadedPrimitives().get(name) as never,
        [x],
        [
          { shape: [5], dtype: "float32" },
          { shape: [5], dtype: "int64" },
        ],
        { axes: [1], parameter: 0 } as never,
      ),
  },
];

export const reductionDerivative: readonly Walk[] = [
  {
    names: derivatives.names,
    operands: () => {
      const [x, y] = ["x", "y"].map((label) => numbersOf(drawn(label, [40], { low: -3, high: 3 }))) as [
        number[],
        number[],
      ];
      return [shaped([40], x), shaped([40], y.with(3, x[3]).with(8, x[8]))];
    },
    compute: (name, inputs) => run("reductionDerivative", inputs, [40], "float32", { name, parameter: 3 }),
  },
];

/** Short slices, and those that fit a threadgroup of metal. */
export const scan: readonly Walk[] = [7, 130].map((length) => ({
  names: scans.names,
  operands: () => [drawn("x", [3, length], { low: 0.6, high: 1.5 }), drawn("a", [3, length], { low: -0.9, high: 0.9 })],
  compute: (name, [x, a]) => {
    const inputs = name.endsWith("ecurrence") ? [x, a] : [x];
    return run(name, inputs, x.shape, "float32", { axis: 1, reverse: false });
  },
}));

/** Slices along the last axis, and along the first. */
export const softmax: readonly Walk[] = [1, 0].map((axis) => ({
  names: softmaxes.names,
  operands: () => [drawn("x", [6, 40], { low: -3, high: 3 }), drawn("y", [6, 40], { low: -2, high: 2 })],
  compute: (name, [x, y]) => run(name, name.endsWith("Gradient") ? [x, y] : [x], [6, 40], "float32", { axis }),
}));

/** Operands of losses that have more than two. */
const operandsOfLosses: Readonly<Record<string, number>> = {
  weightedBinaryCrossEntropy: 4,
  weightedProbabilityCrossEntropy: 3,
  ranking: 3,
  gaussian: 3,
};

/** The values, and the gradients of the operands. */
export const loss: readonly Walk[] = [
  {
    names: losses.names,
    operands: () => [
      drawn("x", [30], { low: -3, high: 3 }),
      drawn("target", [30], { low: 0.1, high: 0.9 }),
      drawn("weight", [30], { low: 0.5, high: 2 }),
      drawn("positive", [30], { low: 1.5, high: 3 }),
      drawn("scale", [30], { low: 0.5, high: 2 }),
    ],
    compute: (name, [x, target, weight, positive, scale]) => {
      const count = operandsOfLosses[name] ?? 2;
      const inputs = [x, target, weight, positive].slice(0, count);
      const own = { shape: [30], dtype: "float32" } as const;
      const attributes = { loss: name, factor: 1, parameters: [0.75, 1.25] };
      const gradient = loadedPrimitives().get("lossGradient") as never;
      const needs = [true, true, count === 3];
      return [
        run("loss", inputs, [30], "float32", { ...attributes, isSummed: false }),
        ...executeMany(gradient, [scale, ...inputs], new Array(count === 3 ? 3 : 2).fill(own), {
          ...attributes,
          needs,
        } as never),
      ];
    },
  },
];

const coefficients = {
  ...noCoefficients,
  stepSize: 0.7,
  l2: 0.1,
  momentum: 0.8,
  oneMinusBeta1: 0.3,
  oneMinusBeta2: 0.2,
  decoupledDecay: 0.05,
  biasCorrection: 1.3,
  eps: 1e-3,
};

/** The parameters after a step, and their state. */
export const updateRule: readonly Walk[] = [
  {
    names: updateRules.names,
    operands: () => [drawn("parameter", [33], { low: -2, high: 2 }), drawn("gradient", [33], { low: -2, high: 2 })],
    compute: (name, [parameter, gradient]) => {
      const planes = ruleState[name as RuleName].length;
      const [own, state] = [parameter.clone() as Tensor, drawn("state", [planes * 33], { low: 0.5, high: 1.5 })];
      const targets = planes === 0 ? [own] : [state, own];
      const members = [{ start: 0, coefficients }];
      const attributes = { rule: name as RuleName, hasMaster: false, hasState: planes > 0, plane: 33, members };
      executeUpdate(updatePrimitive, targets, [gradient], attributes);
      return planes === 0 ? [own] : [own, state];
    },
  },
];

export const scattering: readonly Walk[] = [
  {
    names: scatterings.names,
    operands: () => [
      drawn("x", [5, 4], { low: -2, high: 2 }),
      drawn("source", [9, 4], { low: -2, high: 2 }),
      drawn("index", [9, 4], { integers: [0, 3] }, "int64"),
    ],
    compute: (way, [x, source, index]) => {
      const attributes = { operation: "scatter", dim: 0, way, includesSelf: true };
      return run("scatter", [x, index, source], [5, 4], "float32", attributes);
    },
  },
];

/** The bags, and the gradient of the table. */
export const bagMode: readonly Walk[] = [
  {
    names: bagModes.names,
    operands: () => [drawn("table", [7, 5], { low: -2, high: 2 })],
    compute: (mode, [table]) => {
      const own = variable(table);
      const out = embeddingBag(tensor([0n, 1n, 1n, 4n, 6n, 5n]), own, {
        offsets: tensor([0n, 2n, 3n]),
        mode: mode as "sum",
      }) as Tensor;
      return [out, ...grad(out.mul(drawn("share", [3, 5], { low: 0.5, high: 2 })).sum() as Tensor, [own])];
    },
  },
];

/** The results of attention, and the gradients of its operands. */
export const attentionPass: readonly Walk[] = [
  {
    names: ["forward", "backward"],
    operands: () => ["q", "k", "v"].map((label) => drawn(label, [1, 2, 6, 8], { low: -2, high: 2 })),
    compute: (pass, operands) => {
      const own = operands.map(variable);
      const out = flashAttention(own[0], own[1], own[2]) as Tensor;
      if (pass === "forward") return out;
      return grad(out.mul(drawn("share", out.shape, { low: 0.5, high: 2 })).sum() as Tensor, own);
    },
  },
];

const recurrentLayers = {
  lstm: () => new nn.LSTM(3, 4),
  gru: () => new nn.GRU(3, 4),
  tanh: () => new nn.RNN(3, 4),
  relu: () => new nn.RNN(3, 4, { nonlinearity: "relu" }),
} as const;

/** The outputs of layers without gradients: the cpu backend runs all steps in one call. */
export const recurrentKind: readonly Walk[] = [
  {
    names: Object.keys(recurrentLayers),
    operands: () => [drawn("steps", [5, 2, 3], { low: -2, high: 2 })],
    compute: (kind, [x]) => {
      manualSeed(7); // the same weights on every backend
      const layer = recurrentLayers[kind as keyof typeof recurrentLayers]();
      return noGrad(() => layer.forward(x).output as Tensor);
    },
  },
];
