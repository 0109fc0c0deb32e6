/**
 * Writers of special functions, as compositions of nodes. Most are computed in float64 and rounded once; nodes of
 * float64 that onnxruntime lacks, such as Erf and Tan, are avoided.
 */

import type { CapturedCall } from "../../backend/capture.ts";
import { lastElement } from "../../core/collections.ts";
import { besselTables } from "../../ops/elementwise/bessel_tables.ts";
import { isFloat } from "../../tensor/dtype.ts";
import { Formulas, scaledErrorFunction } from "./formulas.ts";
import type { Recorder } from "./recorder.ts";
import { Unwritable } from "./unwritable.ts";
import type { Writer, Writers } from "./writer.ts";

/** A function of x in float64. */
type Compute = (graph: Formulas, x: string) => string;

const inDouble =
  (compute: Compute): Writer =>
  (recorder, { inputs, outputs: [output] }) => {
    const graph = new Formulas(recorder, "float64");
    const result = compute(graph, graph.cast(recorder.broadcastName(lastElement(inputs)), "float64"));
    return graph.cast(result, output.dtype);
  };

/** As {@link inDouble}, for approximations to the precision of float32. */
const approximate =
  (name: string, compute: Compute): Writer =>
  (recorder, call) => {
    if (call.inputs[0].dtype === "float64") throw new Unwritable(`${name} of float64`);
    return inDouble(compute)(recorder, call);
  };

const sumOf = (graph: Formulas, terms: readonly (string | number)[]): string =>
  terms.reduce((sum, term) => graph.of("Add", sum, term)) as string;
const productOf = (graph: Formulas, factors: readonly (string | number)[]): string =>
  factors.reduce((product, factor) => graph.of("Mul", product, factor)) as string;

/** Arguments are raised by this much before an asymptotic series. */
const RAISED = 12;

/** x, x + 1, …, x + RAISED − 1 */
const raising = (graph: Formulas, x: string): string[] =>
  Array.from({ length: RAISED }, (_, k) => graph.of("Add", x, k));

/** x minus the nearest integer, and whether x is negative. */
function reflection(graph: Formulas, x: string): { readonly remainder: string; readonly isBelow: string } {
  return { remainder: graph.of("Sub", x, graph.of("Round", x)), isBelow: graph.of("Less", x, 0) };
}

/** Returns 1 − x where x is below 0, and x elsewhere. */
const reflected = (graph: Formulas, x: string, isBelow: string): string =>
  graph.where(isBelow, graph.of("Sub", 1, x), x);

/** Stirling's series of ln Γ, and ln Γ(x) = ln(π / |sin πx|) − ln Γ(1 − x): DLMF 5.11.1, 5.5.3. */
const lgamma: Compute = (graph, x) => {
  const { remainder, isBelow } = reflection(graph, x);
  const positive = reflected(graph, x, isBelow);
  const isNear = graph.of("Less", positive, 16);
  const y = graph.where(isNear, graph.of("Add", positive, RAISED), positive);
  const factors = graph.of("Log", productOf(graph, raising(graph, graph.of("Min", positive, 16))));
  const inverse = graph.of("Reciprocal", y);
  const series = [1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360_360, 1 / 156];
  const tail = graph.of("Mul", graph.polynomial(graph.of("Mul", inverse, inverse), series), inverse);
  const main = graph.of("Mul", graph.of("Sub", y, 0.5), graph.of("Sub", graph.of("Log", y), 1));
  const stirling = sumOf(graph, [main, tail, (Math.log(2 * Math.PI) - 1) / 2]);
  const value = graph.of("Sub", stirling, graph.where(isNear, factors, 0));
  const sine = graph.of("Abs", graph.of("Sin", graph.of("Mul", remainder, Math.PI)));
  const turned = graph.of("Sub", graph.of("Neg", graph.of("Log", graph.of("Div", sine, Math.PI))), value);
  const isInfinite = graph.of("Equal", graph.of("Abs", x), Infinity);
  return graph.where(isInfinite, Infinity, graph.where(isBelow, turned, value));
};

/** ψ(x) ~ ln x − 1/2x − Σ B₂ₖ / 2k x²ᵏ, and ψ(x) = ψ(1 − x) − π / tan πx: DLMF 5.11.2, 5.5.4. */
const digamma: Compute = (graph, x) => {
  const { remainder, isBelow } = reflection(graph, x);
  const positive = reflected(graph, x, isBelow);
  const y = graph.of("Add", positive, RAISED);
  const inverse = graph.of("Reciprocal", y);
  const series = [1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32_760, 1 / 12];
  const tail = graph.of("Mul", graph.polynomial(graph.of("Mul", inverse, inverse), series), inverse);
  const asymptotic = graph.of("Sub", graph.of("Log", y), graph.of("Mul", graph.of("Add", tail, 0.5), inverse));
  const terms = raising(graph, positive).map((each) => graph.of("Reciprocal", each));
  const value = graph.of("Sub", asymptotic, sumOf(graph, terms));
  const angle = graph.of("Mul", remainder, Math.PI);
  const cotangent = graph.of("Div", graph.of("Mul", graph.of("Cos", angle), Math.PI), graph.of("Sin", angle));
  const turned = graph.where(graph.of("Equal", remainder, 0), Number.NaN, graph.of("Sub", value, cotangent));
  return graph.where(isBelow, turned, value);
};

const factorial = (n: number): number => Array.from({ length: n }, (_, k) => k + 1).reduce((a, b) => a * b, 1);

/** B₂ₖ / (2k)! */
const BERNOULLI = [
  1 / 12,
  -1 / 720,
  1 / 30_240,
  -1 / 1_209_600,
  1 / 47_900_160,
  -691 / 1_307_674_368_000,
  1 / 74_724_249_600,
  -3617 / 10_670_622_842_880_000,
];

/** n! ζ(n + 1, x) by the Euler–Maclaurin formula: DLMF 25.11.5. */
function scaledZeta(graph: Formulas, n: number, x: string): string {
  const power = (y: string, exponent: number, factor: number) => graph.of("Mul", graph.of("Pow", y, -exponent), factor);
  const end = graph.of("Add", x, RAISED);
  const series = BERNOULLI.map((bernoulli, k) => power(end, n + 2 * k + 2, bernoulli * factorial(n + 2 * k + 1)));
  const terms = raising(graph, x).map((each) => power(each, n + 1, factorial(n)));
  return sumOf(graph, [power(end, n, factorial(n - 1)), power(end, n + 1, factorial(n) / 2), ...series, ...terms]);
}

/** Powers of larger orders overflow. */
const MOST_ORDER = 20;

/**
 * (−1)ⁿ⁺¹ n! ζ(n + 1, x), where ζ sums 1 / (x + k)ⁿ⁺¹ for k ≥ 0. Below 0, it is the sum over all integers k, which is
 * the same for x modulo 1, minus the terms with k < 0.
 */
const polygamma: Writer = (recorder, call) => {
  const order = orderOf(recorder, call);
  return inDouble((graph, x) => {
    const sign = order % 2 === 0 ? -1 : 1;
    const signed = (y: string) => (sign < 0 ? graph.of("Neg", y) : y);
    const { remainder, isBelow } = reflection(graph, x);
    const zeta = (y: string) => scaledZeta(graph, order, y);
    const pole = graph.of("Mul", graph.of("Pow", remainder, -order - 1), factorial(order));
    const upper = graph.of("Add", pole, zeta(graph.of("Add", remainder, 1)));
    const all = graph.of("Add", signed(upper), zeta(graph.of("Sub", 1, remainder)));
    const below = graph.of("Sub", all, zeta(graph.of("Sub", 1, x)));
    const turned = graph.where(graph.of("Equal", remainder, 0), sign * Infinity, below);
    return graph.where(isBelow, turned, signed(zeta(graph.of("Abs", x))));
  })(recorder, call);
};

function orderOf(recorder: Recorder, { inputs: [order] }: CapturedCall): number {
  if (recorder.isVariable(order)) throw new Unwritable("polygamma of an order that depends on the inputs");
  const n = Number(order.dataSync()[0]);
  if (n > MOST_ORDER) throw new Unwritable(`polygamma of an order above ${MOST_ORDER}`);
  return n;
}

type Order = 0 | 1;

/** The bound between the power series and the asymptotic series of I. */
const FAR = 20;

/** Σ (x / 2)²ᵏ / k! (k + order)!, times x / 2 for order 1: DLMF 10.25.2. */
function nearI(graph: Formulas, order: Order, x: string): string {
  const half = graph.of("Mul", graph.of("Min", x, FAR), 0.5);
  const coefficients = [1];
  for (let k = 1; k <= 36; k++) coefficients.push(lastElement(coefficients) / (k * (k + order)));
  const sum = graph.polynomial(graph.of("Mul", half, half), coefficients);
  return order === 0 ? sum : graph.of("Mul", sum, half);
}

/** e⁻ˣ I(x) by Hankel's series: DLMF 10.40.1. */
function scaledFarI(graph: Formulas, order: Order, x: string): string {
  const far = graph.of("Max", x, FAR);
  const coefficients = [1];
  for (let k = 1; k <= 30; k++)
    coefficients.push((lastElement(coefficients) * ((2 * k - 1) ** 2 - 4 * order)) / (8 * k));
  const sum = graph.polynomial(graph.of("Reciprocal", far), coefficients);
  return graph.of("Div", sum, graph.of("Sqrt", graph.of("Mul", far, 2 * Math.PI)));
}

/** Computes an odd or even function of x from its values for |x|. */
function withParity(graph: Formulas, order: Order, x: string, value: string): string {
  return order === 0 ? value : graph.where(graph.of("Less", x, 0), graph.of("Neg", value), value);
}

const besselI =
  (order: Order, isScaled: boolean): Compute =>
  (graph, x) => {
    const size = graph.of("Abs", x);
    const isNear = graph.of("LessOrEqual", size, FAR);
    const [near, far] = [nearI(graph, order, size), scaledFarI(graph, order, size)];
    const half = graph.of("Exp", graph.of("Mul", size, isScaled ? -0.5 : 0.5));
    const times = (y: string) => graph.of("Mul", graph.of("Mul", half, y), half); // e^x overflows before I does
    const value = isScaled ? graph.where(isNear, times(near), far) : graph.where(isNear, near, times(far));
    const unbounded = isScaled ? value : graph.where(graph.of("Equal", size, Infinity), Infinity, value);
    return withParity(graph, order, x, unbounded);
  };

/** The squares of the first two positive zeros of J of each order. */
const ZEROS = [
  [5.783185962946785, 30.471262343662087],
  [14.681970642123893, 49.2184563216946],
] as const;

/** Cephes uses a series below these arguments and an asymptotic form above them: for J and Y, and for K. */
const FAR_J = 5;
const FAR_K = 2;

/** A polynomial with the highest coefficient first. */
const horner = (graph: Formulas, x: string, coefficients: readonly number[]): string =>
  graph.polynomial(x, coefficients.toReversed());
const ratioOf = (graph: Formulas, x: string, above: readonly number[], below: readonly number[]): string =>
  graph.of("Div", horner(graph, x, above), horner(graph, x, below));

function nearJ(graph: Formulas, order: Order, x: string): string {
  const [{ rp, rq }, [first, second], z] = [besselTables[order], ZEROS[order], graph.of("Mul", x, x)];
  const roots = graph.of("Mul", graph.of("Sub", z, first), graph.of("Sub", z, second));
  const value = graph.of("Mul", roots, ratioOf(graph, z, rp, [1, ...rq]));
  return order === 0 ? value : graph.of("Mul", value, x);
}

/** √(2 / πx) (P cos θ − (5 / x) Q sin θ) for J, and √(2 / πx) (P sin θ + (5 / x) Q cos θ) for Y. */
function farJ(graph: Formulas, order: Order, size: string, isFirst: boolean): string {
  const { pp, pq, qp, qq } = besselTables[order];
  const x = graph.of("Max", size, FAR_J);
  const ratio = graph.of("Div", FAR_J, x);
  const z = graph.of("Mul", ratio, ratio);
  const p = ratioOf(graph, z, pp, pq);
  const q = graph.of("Mul", ratio, ratioOf(graph, z, qp, [1, ...qq]));
  const angle = graph.of("Sub", x, ((2 * order + 1) * Math.PI) / 4);
  const [cosine, sine] = [graph.of("Cos", angle), graph.of("Sin", angle)];
  const [a, b] = isFirst ? [cosine, sine] : [sine, cosine];
  const sum = graph.of(isFirst ? "Sub" : "Add", graph.of("Mul", p, a), graph.of("Mul", q, b));
  return graph.of("Mul", sum, graph.of("Sqrt", graph.of("Div", 2 / Math.PI, x)));
}

const besselJ =
  (order: Order): Compute =>
  (graph, x) => {
    const size = graph.of("Abs", x);
    const isFar = graph.of("Greater", size, FAR_J);
    const value = graph.where(isFar, farJ(graph, order, size, true), nearJ(graph, order, graph.of("Min", size, FAR_J)));
    return withParity(graph, order, x, value);
  };

/** Sets the values at 0 and below 0. */
const withPole = (graph: Formulas, x: string, atZero: number, value: string): string =>
  graph.where(graph.of("Equal", x, 0), atZero, graph.where(graph.of("Less", x, 0), Number.NaN, value));

const besselY =
  (order: Order): Compute =>
  (graph, x) => {
    const near = graph.of("Min", x, FAR_J);
    const { yp, yq } = besselTables[order];
    const rational = ratioOf(graph, graph.of("Mul", near, near), yp, [1, ...yq]);
    const product = graph.of("Mul", nearJ(graph, order, near), graph.of("Log", near));
    const pole = order === 0 ? product : graph.of("Sub", product, graph.of("Reciprocal", near));
    const smooth = order === 0 ? rational : graph.of("Mul", rational, near);
    const series = graph.of("Add", smooth, graph.of("Mul", pole, 2 / Math.PI));
    const value = graph.where(graph.of("Greater", x, FAR_J), farJ(graph, order, x, false), series);
    return withPole(graph, x, -Infinity, value);
  };

/** Clenshaw's recurrence for a Chebyshev series in x / 2; the highest order comes first. */
function chebyshev(graph: Formulas, x: string, coefficients: readonly number[]): string {
  let [value, before, last]: [string, string, string] = [graph.of("Mul", x, 0), "", ""];
  [before, last] = [value, value];
  for (const coefficient of coefficients) {
    [last, before] = [before, value];
    value = graph.of("Add", graph.of("Sub", graph.of("Mul", x, before), last), coefficient);
  }
  return graph.of("Mul", graph.of("Sub", value, last), 0.5);
}

const besselK =
  (order: Order, isScaled: boolean): Compute =>
  (graph, x) => {
    const { near, far } = besselTables[order];
    const [small, large] = [graph.of("Min", x, FAR_K), graph.of("Max", x, FAR_K)];
    const decay = (y: string) => graph.of("Exp", graph.of("Neg", y));
    const inverse = graph.of("Sub", graph.of("Div", 8, large), 2);
    const scaled = graph.of("Div", chebyshev(graph, inverse, far), graph.of("Sqrt", large));
    const series = chebyshev(graph, graph.of("Sub", graph.of("Mul", small, small), 2), near);
    const product = graph.of("Mul", graph.of("Log", graph.of("Mul", small, 0.5)), nearI(graph, order, small));
    const plain =
      order === 0 ? graph.of("Sub", series, product) : graph.of("Add", product, graph.of("Div", series, small));
    const [below, above] = isScaled
      ? [graph.of("Mul", plain, graph.of("Exp", small)), scaled]
      : [plain, graph.of("Mul", scaled, decay(large))];
    return withPole(graph, x, Infinity, graph.where(graph.of("Greater", x, FAR_K), above, below));
  };

/** Polynomials in w = −ln(1 − x²): M. Giles, "Approximating the erfinv function", 2010, for float32. */
const CENTRAL = [
  1.50140941, 0.246640727, -0.00417768164, -0.00125372503, 0.00021858087, -4.39150654e-6, -3.5233877e-6, 3.43273939e-7,
  2.81022636e-8,
];
const TAIL = [
  2.83297682, 1.00167406, 0.00943887047, -0.0076224613, 0.00573950773, -0.00367342844, 0.00134934322, 0.000100950558,
  -0.000200214257,
];

/** @param w −ln(1 − x²) @param x between −1 and 1 */
function erfinvOf(graph: Formulas, w: string, x: string): string {
  const central = graph.polynomial(graph.of("Sub", w, 2.5), CENTRAL);
  const tail = graph.polynomial(graph.of("Sub", graph.of("Sqrt", graph.of("Max", w, 0)), 3), TAIL);
  return graph.of("Mul", graph.where(graph.of("Less", w, 5), central, tail), x);
}

const erfinv: Compute = (graph, x) => {
  const square = graph.of("Mul", graph.of("Sub", 1, x), graph.of("Add", 1, x));
  const value = erfinvOf(graph, graph.of("Neg", graph.of("Log", square)), x);
  const atOne = graph.of("Mul", x, Infinity);
  return graph.where(graph.of("Equal", graph.of("Abs", x), 1), atOne, value);
};

/** Below this probability, the inverse of the normal distribution is computed by Newton's method on its logarithm. */
const RARE = 1e-4;

/** The y whose Φ(−y) is q, for q up to {@link RARE}: with z = y / √2, ln Φ(−y) = ln(erfcx(z) / 2) − z². */
function rareQuantile(graph: Formulas, q: string): string {
  const logarithm = graph.of("Log", q);
  let y = graph.of("Sqrt", graph.of("Mul", logarithm, -2));
  for (let step = 0; step < 5; step++) {
    const z = graph.of("Mul", y, Math.SQRT1_2);
    const scaled = scaledErrorFunction(graph, z);
    const half = graph.of("Add", graph.of("Log", graph.of("Mul", scaled.t, 0.5)), scaled.logarithm);
    const error = graph.of("Sub", logarithm, graph.of("Sub", half, graph.of("Mul", z, z)));
    const slope = graph.of("Mul", graph.of("Mul", scaled.t, graph.of("Exp", scaled.logarithm)), Math.sqrt(Math.PI / 2));
    y = graph.of("Sub", y, graph.of("Mul", error, slope));
  }
  return y;
}

/** √2 erfinv(2p − 1) */
const ndtri: Compute = (graph, p) => {
  const complement = graph.of("Sub", 1, p);
  const w = graph.of("Neg", graph.of("Log", graph.of("Mul", graph.of("Mul", p, complement), 4)));
  const common = erfinvOf(graph, w, graph.of("Mul", graph.of("Sub", p, complement), Math.SQRT2));
  const least = graph.of("Min", p, complement);
  const size = rareQuantile(graph, graph.of("Min", graph.of("Max", least, 1e-300), RARE));
  const rare = graph.where(graph.of("Less", p, 0.5), graph.of("Neg", size), size);
  const isRare = graph.of("And", graph.of("Less", least, RARE), graph.of("GreaterOrEqual", least, 0));
  const value = graph.where(isRare, rare, common);
  const atZero = graph.where(graph.of("Equal", p, 0), -Infinity, value);
  return graph.where(graph.of("Equal", p, 1), Infinity, atZero);
};

/** x · 2ᵏ in two factors, since one may overflow. */
function timesPower(graph: Formulas, x: string, k: string): string {
  const half = graph.of("Floor", graph.of("Mul", k, 0.5));
  const factor = (exponent: string) => graph.of("Pow", 2, exponent);
  return graph.of("Mul", graph.of("Mul", x, factor(half)), factor(graph.of("Sub", k, half)));
}

/** The k for which |x| / 2ᵏ is at least ½ and below 1; 0 for 0, infinity and NaN. */
const exponent: Compute = (graph, x) => {
  const size = graph.of("Abs", x);
  const isPlain = graph.of("And", graph.of("Greater", size, 0), graph.of("Less", size, Infinity));
  const plain = graph.where(isPlain, size, 1);
  const near = graph.of("Add", graph.of("Floor", graph.of("Div", graph.of("Log", plain), Math.LN2)), 1);
  const mantissa = timesPower(graph, plain, graph.of("Neg", near)); // the logarithm may round to the next integer
  const low = graph.where(graph.of("Less", mantissa, 0.5), -1, 0);
  const exact = graph.of("Add", near, graph.where(graph.of("GreaterOrEqual", mantissa, 1), 1, low));
  return graph.where(isPlain, exact, 0);
};

/** The maximum number of steps of Euclid's algorithm for each dtype. Fibonacci numbers need the most. */
const steps: Readonly<Record<string, number>> = { uint8: 13, int8: 12, int32: 46, uint32: 47, int64: 92 };

function greatestDivisor(graph: Formulas, a: string, b: string): string {
  let [x, y] = [a, b];
  for (let step = 0; step < steps[graph.dtype]; step++) {
    const isDone = graph.of("Equal", y, 0);
    const rest = graph.of("Mod", x, graph.where(isDone, 1, y));
    [x, y] = [graph.where(isDone, x, y), graph.where(isDone, 0, rest)];
  }
  return x;
}

const ofDivisor =
  (finish: (graph: Formulas, divisor: string, a: string, b: string) => string): Writer =>
  (recorder, { inputs }) => {
    const { dtype } = inputs[0];
    if (isFloat(dtype) || steps[dtype] === undefined) throw new Unwritable(`divisors of ${dtype}`);
    const graph = new Formulas(recorder, dtype);
    const sizeOf = (x: string) => (dtype.startsWith("u") ? x : graph.of("Abs", x));
    const [a, b] = inputs.map((x) => sizeOf(recorder.broadcastName(x))) as [string, string];
    return finish(graph, greatestDivisor(graph, a, b), a, b);
  };

export const special: Writers = {
  lgamma: inDouble(lgamma),
  digamma: inDouble(digamma),
  polygamma,
  i0: inDouble(besselI(0, false)),
  i1: inDouble(besselI(1, false)),
  i0e: inDouble(besselI(0, true)),
  i1e: inDouble(besselI(1, true)),
  besselJ0: inDouble(besselJ(0)),
  besselJ1: inDouble(besselJ(1)),
  besselY0: inDouble(besselY(0)),
  besselY1: inDouble(besselY(1)),
  modifiedBesselK0: inDouble(besselK(0, false)),
  modifiedBesselK1: inDouble(besselK(1, false)),
  scaledModifiedBesselK0: inDouble(besselK(0, true)),
  scaledModifiedBesselK1: inDouble(besselK(1, true)),
  erfinv: approximate("erfinv", erfinv),
  ndtri: approximate("ndtri", ndtri),
  frexpExponent: inDouble(exponent),
  frexpMantissa: inDouble((graph, x) => timesPower(graph, x, graph.of("Neg", exponent(graph, x)))),
  gcd: ofDivisor((_, divisor) => divisor),
  lcm: ofDivisor((graph, divisor, a, b) => {
    const isNone = graph.of("Equal", divisor, 0);
    return graph.of("Mul", graph.of("Div", a, graph.where(isNone, 1, divisor)), b);
  }),
};
