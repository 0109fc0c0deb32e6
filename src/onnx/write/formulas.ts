/** Writers of elementwise operations, as nodes or compositions of nodes. */

import type { CapturedCall } from "../../backend/capture.ts";
import { lastElement } from "../../core/collections.ts";
import type { Operands } from "../../core/operands.ts";
import { type DType, isFloat } from "../../tensor/dtype.ts";
import { elementTypes } from "./encode.ts";
import type { RecordedNode, Recorder, Sizes } from "./recorder.ts";
import { Unwritable } from "./unwritable.ts";
import type { Writer, Writers } from "./writer.ts";

type Operand = string | number | Sizes;

/** Nodes by operator, with constants for numbers. */
export class Formulas {
  readonly recorder: Recorder;
  readonly dtype: DType;

  /** @param dtype of the constants */
  constructor(recorder: Recorder, dtype: DType) {
    this.recorder = recorder;
    this.dtype = dtype;
  }

  of(operator: string, ...operands: readonly Operand[]): string {
    return this.with({}, operator, ...operands);
  }

  with(attributes: RecordedNode["attributes"], operator: string, ...operands: readonly Operand[]): string {
    const names = operands.map((each) => (typeof each === "number" ? this.recorder.scalar(each, this.dtype) : each));
    return this.recorder.node(operator, names, attributes);
  }

  cast(x: string | Sizes, dtype: DType): string {
    return this.with({ to: elementTypes[dtype] }, "Cast", x);
  }

  where(condition: string, yes: Operand, no: Operand): string {
    return this.of("Where", condition, yes, no);
  }

  reshape(x: string, sizes: readonly number[]): string {
    return this.of("Reshape", x, { sizes });
  }

  /** Σ coefficients[k] xᵏ */
  polynomial(x: string, coefficients: readonly number[]): string {
    const [highest = 0, ...rest] = coefficients.toReversed();
    return rest.reduce<Operand>((sum, each) => this.of("Add", this.of("Mul", sum, x), each), highest) as string;
  }
}

/** Writes a formula, given the names of the operands. */
type Formula = (graph: Formulas, operands: Operands<string>, dtype: DType) => string;

/** Compositions of operations on half floats are computed in float32 and rounded once, as in Orchard. */
const formula =
  (compute: Formula): Writer =>
  (recorder, call) =>
    computed(recorder, call, compute, call.inputs[0].dtype === "float16" || call.inputs[0].dtype === "bfloat16");

function computed(
  recorder: Recorder,
  { inputs, outputs: [output] }: CapturedCall,
  compute: Formula,
  isWide: boolean,
): string {
  const dtype = isWide ? "float32" : lastElement(inputs).dtype;
  const graph = new Formulas(recorder, dtype);
  const names = inputs.map((x) => {
    const name = recorder.broadcastName(x);
    return isWide && isFloat(x.dtype) ? graph.cast(name, dtype) : name;
  });
  const first = inputs[0].dtype;
  const result = compute(
    graph,
    names as readonly string[] as Operands<string>,
    isWide && isFloat(first) ? dtype : first,
  );
  return isWide && isFloat(output.dtype) ? graph.cast(result, output.dtype) : result;
}

/** Operators that the standard does not define for bfloat16. */
const WITHOUT_BFLOAT16: ReadonlySet<string> = new Set([
  "Sin",
  "Cos",
  "Tan",
  "Asin",
  "Acos",
  "Atan",
  "Sinh",
  "Cosh",
  "Asinh",
  "Acosh",
  "Atanh",
  "Round",
  "Softsign",
  "HardSwish",
  "IsInf",
]);

/** An operator of the standard with the same meaning and operands. */
const same =
  (operator: string): Writer =>
  (recorder, call) => {
    const isWide = call.inputs[0].dtype === "bfloat16" && WITHOUT_BFLOAT16.has(operator);
    return computed(recorder, call, (graph, operands) => graph.of(operator, ...operands), isWide);
  };

/** An operator of bools. Numbers are converted to bool: true if nonzero. */
const logical =
  (operator: string): Writer =>
  (recorder, { inputs }) => {
    const graph = new Formulas(recorder, "bool");
    const names = inputs.map((x) => {
      const name = recorder.broadcastName(x);
      return x.dtype === "bool" ? name : graph.cast(name, "bool");
    });
    return graph.of(operator, ...names);
  };

/** An operator of floats that returns `otherwise` for integers and bools. */
const ofFloats = (compute: Formula, otherwise: Formula): Writer =>
  formula((graph, operands, dtype) => (isFloat(dtype) ? compute : otherwise)(graph, operands, dtype));

const hasSign = (graph: Formulas, x: string): string => {
  const isBelow = (y: string) => graph.of("Less", y, 0);
  return graph.of("Or", isBelow(x), isBelow(graph.of("Div", 1, x))); // 1 / −0 is −∞
};

/** The remainder with the sign of the divisor. */
function remainder(graph: Formulas, [a, b]: Operands<string>, dtype: DType): string {
  if (!isFloat(dtype)) return graph.of("Mod", a, b);
  const rest = graph.with({ fmod: 1 }, "Mod", a, b);
  const [isRestBelow, isDivisorBelow] = [rest, b].map((each) => graph.of("Less", each, 0)) as [string, string];
  const differs = graph.of("And", graph.of("Xor", isRestBelow, isDivisorBelow), isNonzero(graph, rest));
  return graph.where(differs, graph.of("Add", rest, b), rest);
}

const isNonzero = (graph: Formulas, x: string): string => graph.of("Not", graph.of("Equal", x, 0));

/** (a − remainder) / b, which is whole up to rounding. */
const floorDivide: Formula = (graph, operands, dtype) => {
  const [a, b] = operands;
  const quotient = graph.of("Div", graph.of("Sub", a, remainder(graph, operands, dtype)), b);
  return isFloat(dtype) ? graph.of("Round", quotient) : quotient;
};

/** √(a² + b²) = m √(1 + (n / m)²) with the larger m and the smaller n of |a| and |b|. */
const hypot: Formula = (graph, operands) => {
  const [a, b] = operands.map((each) => graph.of("Abs", each)) as [string, string];
  const [most, least] = [graph.of("Max", a, b), graph.of("Min", a, b)];
  const ratio = graph.of("Div", least, most);
  const length = graph.of("Mul", most, graph.of("Sqrt", graph.of("Add", graph.of("Mul", ratio, ratio), 1)));
  return graph.where(graph.of("Or", graph.of("Equal", most, 0), graph.of("IsInf", most)), most, length);
};

/** arctan(y / x), plus or minus π where x is negative. */
const atan2: Formula = (graph, [y, x]) => {
  const half = graph.where(hasSign(graph, y), -Math.PI, Math.PI);
  const near = graph.of("Atan", graph.of("Div", y, x));
  const turned = graph.where(graph.of("Less", x, 0), graph.of("Add", near, half), near);
  return graph.where(graph.of("Equal", x, 0), graph.of("Mul", graph.of("Sign", y), Math.PI / 2), turned);
};

/** max(a, b) + ln(1 + e^(−|a − b|)), in units of ln(base). */
const logarithmOfSum =
  (base: number): Formula =>
  (graph, [a, b]) => {
    const unit = Math.log(base);
    const distance = graph.of("Mul", graph.of("Abs", graph.of("Sub", a, b)), -unit);
    const sum = graph.of("Add", graph.of("Max", a, b), graph.of("Div", graph.of("Softplus", distance), unit));
    return graph.where(graph.of("Equal", a, b), graph.of("Add", a, Math.LN2 / unit), sum);
  };

/** a f(b), and 0 where a is 0, unless b is NaN. */
const productWithLogarithm =
  (logarithm: (graph: Formulas, b: string) => string): Formula =>
  (graph, [a, b]) => {
    const product = graph.of("Mul", a, logarithm(graph, b));
    const isZero = graph.of("And", graph.of("Equal", a, 0), graph.of("Not", graph.of("IsNaN", b)));
    return graph.where(isZero, 0, product);
  };

/** ln erfc(z) + z² as ln t + P(t) with t = 1 / (1 + z / 2), for z ≥ 0: Numerical Recipes, 6.2; its error is 1.2e-7. */
const ERFC = [
  -1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587, -0.82215223,
  0.17087277,
];

/** e^(z²) erfc(z) as t and a logarithm: t e^logarithm. @param z at least 0 */
export function scaledErrorFunction(graph: Formulas, z: string): { t: string; logarithm: string } {
  const t = graph.of("Reciprocal", graph.of("Add", graph.of("Mul", z, 0.5), 1));
  return { t, logarithm: graph.polynomial(t, ERFC) };
}

function erfc(graph: Formulas, x: string): string {
  if (graph.dtype === "float64") return graph.of("Sub", 1, graph.of("Erf", x));
  const z = graph.of("Abs", x);
  const { t, logarithm } = scaledErrorFunction(graph, z);
  const tail = graph.of("Mul", t, graph.of("Exp", graph.of("Sub", logarithm, graph.of("Mul", z, z))));
  return graph.where(graph.of("Less", x, 0), graph.of("Sub", 2, tail), tail);
}

const erfcx: Formula = (graph, [x], dtype) => {
  if (dtype === "float64") throw new Unwritable("erfcx of float64");
  const { t, logarithm } = scaledErrorFunction(graph, graph.of("Abs", x));
  const tail = graph.of("Mul", t, graph.of("Exp", logarithm));
  const twice = graph.of("Mul", graph.of("Exp", graph.of("Mul", x, x)), 2);
  return graph.where(graph.of("Less", x, 0), graph.of("Sub", twice, tail), tail);
};

/** With z = |x| / √2: ln(erfc(z) / 2) below 0, ln(1 − erfc(z) / 2) above. */
const logNdtr: Formula = (graph, [x], dtype) => {
  if (dtype === "float64") throw new Unwritable("logNdtr of float64");
  const z = graph.of("Mul", graph.of("Abs", x), Math.SQRT1_2);
  const { t, logarithm } = scaledErrorFunction(graph, z);
  const below = graph.of(
    "Sub",
    graph.of("Add", graph.of("Log", graph.of("Mul", t, 0.5)), logarithm),
    graph.of("Mul", z, z),
  );
  const above = graph.of("Log", graph.of("Sub", 1, graph.of("Exp", below)));
  return graph.where(graph.of("Less", x, 0), below, above);
};

/** The larger or the smaller number, ignoring NaN. */
const withoutNan = (operator: string): Writer =>
  ofFloats(
    (graph, [a, b]) =>
      graph.where(graph.of("IsNaN", a), b, graph.where(graph.of("IsNaN", b), a, graph.of(operator, a, b))),
    (graph, [a, b]) => graph.of(operator, a, b),
  );

const bitwise = (operator: string, ofBools: string): Writer =>
  formula((graph, operands, dtype) => graph.of(dtype === "bool" ? ofBools : `Bitwise${operator}`, ...operands));

/** The standard shifts only unsigned integers. These are the numbers of the unsigned types. */
const unsignedTypes: Partial<Record<DType, number>> = { uint8: 2, int8: 2, uint32: 12, int32: 12, int64: 13 };

/** A shift to the right fills negative numbers with ones: ~(~x ≫ n). */
const shift = (direction: "LEFT" | "RIGHT"): Writer =>
  formula((graph, [x, by], dtype) => {
    const to = unsignedTypes[dtype]!;
    const shifted = (y: string) => {
      const [value, count] = [y, by].map((each) => graph.with({ to }, "Cast", each)) as [string, string];
      return graph.cast(graph.with({ direction }, "BitShift", value, count), dtype);
    };
    if (dtype.startsWith("u") || direction === "LEFT") return shifted(x);
    const inverted = graph.of("BitwiseNot", shifted(graph.of("BitwiseNot", x)));
    return graph.where(graph.of("Less", x, 0), inverted, shifted(graph.of("Max", x, 0)));
  });

const special: Writers = {
  erfc: formula((graph, [x]) => erfc(graph, x)),
  ndtr: formula((graph, [x]) => graph.of("Mul", erfc(graph, graph.of("Mul", x, -Math.SQRT1_2)), 0.5)),
  erfcx: formula(erfcx),
  logNdtr: formula(logNdtr),
  hypot: formula(hypot),
  atan2: formula(atan2),
  logaddexp: formula(logarithmOfSum(Math.E)),
  logaddexp2: formula(logarithmOfSum(2)),
  xlogy: formula(productWithLogarithm((graph, b) => graph.of("Log", b))),
  xlog1py: formula(productWithLogarithm((graph, b) => graph.of("Log", graph.of("Add", b, 1)))),
  entr: formula((graph, [x]) => {
    const value = graph.of("Neg", graph.of("Mul", x, graph.of("Log", x)));
    const rest = graph.where(graph.of("Less", x, 0), -Infinity, value);
    return graph.where(graph.of("Equal", x, 0), 0, rest);
  }),
  logit: formula((graph, [x]) => graph.of("Log", graph.of("Div", x, graph.of("Sub", 1, x)))),
  sinc: formula((graph, [x]) => {
    const angle = graph.of("Mul", x, Math.PI);
    return graph.where(graph.of("Equal", x, 0), 1, graph.of("Div", graph.of("Sin", angle), angle));
  }),
  sphericalBesselJ0: formula((graph, [x]) => {
    const quotient = graph.where(
      graph.of("Equal", graph.of("Abs", x), Infinity),
      0,
      graph.of("Div", graph.of("Sin", x), x),
    );
    return graph.where(graph.of("Equal", x, 0), 1, quotient);
  }),
};

const whole: Writers = {
  trunc: ofFloats(
    (graph, [x]) => graph.of("Mul", graph.of("Sign", x), graph.of("Floor", graph.of("Abs", x))),
    (_, [x]) => x,
  ),
  frac: ofFloats(
    (graph, [x]) => graph.with({ fmod: 1 }, "Mod", x, 1),
    (graph, [x]) => graph.of("Mul", x, 0),
  ),
  fmod: formula((graph, operands) => graph.with({ fmod: 1 }, "Mod", ...operands)),
  remainder: formula(remainder),
  floorDivide: formula(floorDivide),
  bitwiseAnd: bitwise("And", "And"),
  bitwiseOr: bitwise("Or", "Or"),
  bitwiseXor: bitwise("Xor", "Xor"),
  bitwiseNot: bitwise("Not", "Not"),
  bitwiseLeftShift: shift("LEFT"),
  bitwiseRightShift: shift("RIGHT"),
};

const signs: Writers = {
  isfinite: ofFloats(
    (graph, [x]) => graph.of("Not", graph.of("Or", graph.of("IsNaN", x), graph.of("IsInf", x))),
    (graph, [x]) => graph.of("Equal", x, x),
  ),
  isnan: ofFloats(
    (graph, [x]) => graph.of("IsNaN", x),
    (graph, [x]) => graph.of("Not", graph.of("Equal", x, x)),
  ),
  isinf: ofFloats(
    (graph, [x]) => graph.of("IsInf", x),
    (graph, [x]) => graph.of("Not", graph.of("Equal", x, x)),
  ),
  signbit: ofFloats(
    (graph, [x]) => hasSign(graph, x),
    (graph, [x], dtype) => (dtype === "bool" ? graph.of("And", x, graph.of("Not", x)) : graph.of("Less", x, 0)),
  ),
  copysign: formula((graph, [a, b]) => {
    const size = graph.of("Abs", a);
    return graph.where(hasSign(graph, b), graph.of("Neg", size), size);
  }),
  fmax: withoutNan("Max"),
  fmin: withoutNan("Min"),
  heaviside: ofFloats(
    (graph, [a, b], dtype) => {
      const step = graph.cast(graph.of("Greater", a, 0), dtype);
      return graph.where(graph.of("Equal", a, 0), b, graph.where(graph.of("IsNaN", a), a, step));
    },
    (graph, [a, b], dtype) =>
      dtype === "bool"
        ? graph.of("Or", a, b)
        : graph.where(graph.of("Equal", a, 0), b, graph.cast(graph.of("Greater", a, 0), dtype)),
  ),
};

export const elementwise: Writers = {
  abs: same("Abs"),
  neg: same("Neg"),
  sign: same("Sign"),
  floor: same("Floor"),
  ceil: same("Ceil"),
  round: same("Round"),
  relu: same("Relu"),
  reciprocal: same("Reciprocal"),
  sqrt: same("Sqrt"),
  exp: same("Exp"),
  log: same("Log"),
  erf: same("Erf"),
  sigmoid: same("Sigmoid"),
  softsign: same("Softsign"),
  sin: same("Sin"),
  cos: same("Cos"),
  tan: same("Tan"),
  asin: same("Asin"),
  acos: same("Acos"),
  atan: same("Atan"),
  sinh: same("Sinh"),
  cosh: same("Cosh"),
  tanh: same("Tanh"),
  asinh: same("Asinh"),
  acosh: same("Acosh"),
  atanh: same("Atanh"),
  hardswish: same("HardSwish"),
  logicalNot: logical("Not"),
  add: same("Add"),
  sub: same("Sub"),
  mul: same("Mul"),
  div: same("Div"),
  pow: same("Pow"),
  maximum: same("Max"),
  minimum: same("Min"),
  eq: same("Equal"),
  lt: same("Less"),
  le: same("LessOrEqual"),
  gt: same("Greater"),
  ge: same("GreaterOrEqual"),
  logicalAnd: logical("And"),
  logicalOr: logical("Or"),
  logicalXor: logical("Xor"),
  where: same("Where"),
  ...special,
  ...whole,
  ...signs,
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
  hardsigmoid: formula((graph, [x], dtype) => {
    if (dtype !== "float64") return graph.with({ alpha: { float: 1 / 6 }, beta: { float: 0.5 } }, "HardSigmoid", x);
    // attributes have the precision of float32
    return graph.of("Min", graph.of("Max", graph.of("Add", graph.of("Div", x, 6), 0.5), 0), 1);
  }),
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
  shrink: formula((graph, [x, least, by]) => {
    const moved = graph.where(graph.of("Less", x, 0), graph.of("Add", x, by), graph.of("Sub", x, by));
    return graph.where(graph.of("LessOrEqual", graph.of("Abs", x), least), 0, moved);
  }),
  threshold: formula((graph, [x, least, other]) => graph.where(graph.of("LessOrEqual", x, least), other, x)),
  nanToNum: formula((graph, [x, nan, most]) => {
    const bounded = graph.of("Min", graph.of("Max", x, graph.of("Neg", most)), most);
    return graph.where(graph.of("IsNaN", x), nan, bounded);
  }),
  huber: formula((graph, [x, y, delta]) => {
    const error = graph.of("Abs", graph.of("Sub", x, y));
    const near = graph.of("Mul", graph.of("Mul", error, error), 0.5);
    const far = graph.of("Mul", delta, graph.of("Sub", error, graph.of("Mul", delta, 0.5)));
    return graph.where(graph.of("LessOrEqual", error, delta), near, far);
  }),
  addcmul: formula((graph, [a, b, c]) => graph.of("Add", a, graph.of("Mul", b, c))),
  addcdiv: formula((graph, [a, b, c]) => graph.of("Add", a, graph.of("Div", b, c))),
  timesPowerOfTwo: formula((graph, [x, power]) => graph.of("Mul", x, graph.of("Pow", 2, power))),
};
