/** Tests arithmetic: kernels' results compared with float64. */
import { compute, drawn, expectNumbers, halfBits, type Probe, Refuted, roundToBfloat } from "../probe.ts";

const many = 4096;

const floats = (count: number, of: () => number): Float32Array<ArrayBuffer> =>
  Float32Array.from({ length: count }, () => of());

/** float32 denormals may be flushed or kept; those of half must be kept. */
const denormals: Probe = () => {
  const x = new Float32Array([1e-39]);
  const halves = Uint16Array.from({ length: 1023 }, (_, index) => index + 1);
  const y = compute({ body: "y[0] = x[0] * 1.0f;", inputs: { x }, result: new Float32Array(1), threads: 1 });
  const kept = compute({
    body: "y[i] = as_type<ushort>(as_type<half>(h[i]) * half(1));",
    inputs: { h: halves },
    result: new Uint16Array(1023),
    threads: 1023,
  });
  expectNumbers(kept, halves, (index) => `the half of bits ${index + 1}, times 1`);
  return `denormals of half are kept, those of float32 are ${y[0] === 0 ? "flushed" : "kept"}`;
};

/**
 * Three sums in sequence, each rounded to the type: a wider intermediate sum gives another result for many of the
 * inputs.
 */
function narrowSums(type: "half" | "bfloat", round: (value: number) => number, bitsOf: (value: number) => number) {
  const draw = drawn(31);
  const value = () => round((draw() - 0.5) * 2 ** Math.floor(draw() * 8));
  const operands = Array.from({ length: 4 }, () => Array.from({ length: many }, value));
  const inputs = Object.fromEntries(operands.map((operand, index) => [`x${index}`, Uint16Array.from(operand, bitsOf)]));
  const got = compute({
    body: `${type} s = as_type<${type}>(x0[i]);
      ${[1, 2, 3].map((index) => `s = s + as_type<${type}>(x${index}[i]);`).join(" ")} y[i] = as_type<ushort>(s);`,
    inputs,
    result: new Uint16Array(many),
    threads: many,
  });
  const expected = Array.from({ length: many }, (_, at) =>
    bitsOf(operands.slice(1).reduce((sum, operand) => round(sum + operand[at]), operands[0][at])),
  );
  expectNumbers(got, expected, (index) => `${type}: bits of ${operands.map((operand) => operand[index]).join(" + ")}`);
}

const narrowRounding: Probe = () => {
  narrowSums("half", Math.f16round, halfBits);
  narrowSums("bfloat", roundToBfloat, (value) => new Uint16Array(new Float32Array([value]).buffer)[1]);
  return `${many} chains of three sums, of half and of bfloat, are rounded after each sum`;
};

/** Operands whose products and sums are exact in float64, so that the reference rounds once. */
const preciseRounding: Probe = () => {
  const draw = drawn(32);
  const [a, b, d] = Array.from({ length: 3 }, () => floats(many, () => 1 + draw()));
  const c = floats(many, () => (draw() < 0.5 ? -1 : 1) * (1 + draw()));
  const body =
    "y[4 * i] = sqrt(a[i] * 8); y[4 * i + 1] = a[i] / b[i]; y[4 * i + 2] = fma(a[i], b[i], c[i]); " +
    "y[4 * i + 3] = fma(a[i] * b[i], d[i], c[i]);";
  const got = compute({ body, inputs: { a: a, b: b, c, d: d }, result: new Float32Array(4 * many), threads: many });
  const expected = Array.from({ length: many }, (_, i) => {
    const [p, q, r, s] = [a[i], b[i], c[i], d[i]];
    return [Math.sqrt(p * 8), p / q, p * q + r, Math.fround(p * q) * s + r].map(Math.fround);
  }).flat();
  const names = ["sqrt", "division", "fma", "fma of a product"];
  expectNumbers(got, expected, (index) => `${names[index % 4]} of operands ${Math.floor(index / 4)}`);
  return `${many} of each of ${names.join(", ")}: the nearest float32`;
};

const extendedArithmetic: Probe = () => {
  const draw = drawn(33);
  const x = floats(many, () => (draw() - 0.5) * 2 ** Math.floor(draw() * 180 - 80));
  const z = floats(many, () => (draw() - 0.5) * 2 ** Math.floor(draw() * 20 - 10));
  const body = `int e; float m = frexp(x[i], e); y[4 * i] = m; y[4 * i + 1] = ldexp(m, e);
    y[4 * i + 2] = x[i] * 0x1p-20f; float p = z[i] * z[(i + 1) % ${many}];
    y[4 * i + 3] = fma(z[i], z[(i + 1) % ${many}], -p);`;
  const got = compute({ body, inputs: { x, z }, result: new Float32Array(4 * many), threads: many });
  for (let i = 0; i < many; i++) {
    const [value, product] = [x[i], z[i] * z[(i + 1) % many]];
    const mantissa = got[4 * i];
    if (value !== 0 && !(Math.abs(mantissa) >= 0.5 && Math.abs(mantissa) < 1))
      throw new Refuted(`frexp(${value}): got a mantissa of ${mantissa}`);
    const rest = product - Math.fround(product);
    expectNumbers(
      got.subarray(4 * i + 1, 4 * i + 4),
      [value, value * 2 ** -20, Math.fround(rest) === 0 ? 0 : rest],
      (index) => `${["ldexp of frexp", "a product with 2^-20", "the rest of a product"][index]} of ${value}`,
    );
  }
  return `${many} numbers come back from frexp and ldexp, and fma gives the exact rest of ${many} products`;
};

const integerDivisionByZero: Probe = () => {
  const body = `y[0] = x[0] / x[1]; y[1] = int(uint(x[0]) / uint(x[1])); y[2] = int(long(x[0]) / long(x[1]));
    y[3] = x[0] % x[1];`;
  const y = compute({ body, inputs: { x: new Int32Array([7, 0]) }, result: new Int32Array(4), threads: 1 });
  return `the kernel ended; 7 / 0 is ${y[0]} as int, ${y[1]} as uint, ${y[2]} as long, and 7 % 0 is ${y[3]}`;
};

const shifts: Probe = () => {
  const draw = drawn(34);
  const x = BigUint64Array.from({ length: many }, () => {
    const bits = (BigInt(Math.floor(draw() * 2 ** 32)) << 32n) | BigInt(Math.floor(draw() * 2 ** 32));
    return bits >> BigInt(Math.floor(draw() * 64));
  });
  const body = `ulong s = i % 64; y[4 * i] = clz(x[i]); y[4 * i + 1] = x[i] << s; y[4 * i + 2] = x[i] >> s;
    y[4 * i + 3] = ulong(long(int(uint(x[i])) >> int(i % 32)));`;
  const got = compute({ body, inputs: { x }, result: new BigUint64Array(4 * many), threads: many });
  const expected = [...x].flatMap((bits, i) => [
    BigInt(bits === 0n ? 64 : 64 - bits.toString(2).length),
    BigInt.asUintN(64, bits << BigInt(i % 64)),
    bits >> BigInt(i % 64),
    BigInt.asUintN(64, BigInt.asIntN(32, bits) >> BigInt(i % 32)),
  ]);
  expectNumbers(got, expected, (index) => `${["clz", "<<", ">>", "int >>"][index % 4]} of ${x[index >> 2]}`);
  return `clz, << and >> of ${many} ulong, and >> of as many int`;
};

/** Returns the distance of a result from the exact one, in units in the last place of float32. */
const ulps = (got: number, exact: number): number => {
  const exponent = Math.max(Math.floor(Math.log2(Math.abs(exact))), -126);
  return Math.abs(got - exact) / 2 ** (exponent - 23);
};

/** Bounds of MSL table 8.2. */
const fastFunctions: Probe = () => {
  const draw = drawn(35);
  const x = floats(many, () => (draw() - 0.5) * 40);
  const functions: readonly [string, (x: number) => number, (x: number) => number][] = [
    ["fast::exp(x[i])", Math.exp, (value) => 3 + Math.floor(Math.abs(2 * value))],
    ["fast::divide(1.0f, x[i])", (value) => 1 / value, () => 2.5],
    ["fast::rsqrt(fabs(x[i]))", (value) => 1 / Math.sqrt(Math.abs(value)), () => 2],
  ];
  const worst = functions.map(([call, exact, bound]) => {
    const got = compute({ body: `y[i] = ${call};`, inputs: { x }, result: new Float32Array(many), threads: many });
    const errors = Array.from(got, (value, index) => ulps(value, exact(x[index])) / bound(x[index]));
    const at = errors.indexOf(Math.max(...errors));
    if (!(errors[at] <= 1)) throw new Refuted(`${call} of ${x[at]}: ${got[at]}, ${errors[at]} times its bound`);
    return `${call.split("(")[0]} reaches ${(100 * errors[at]).toFixed(0)} % of its bound`;
  });
  const large = compute({
    body: "y[0] = fast::tanh(x[0]);",
    inputs: { x: new Float32Array([45]) },
    result: new Float32Array(1),
    threads: 1,
  });
  return `${worst.join(", ")}; fast::tanh(45) is ${large[0]}`;
};

/** A fast tanh divides two infinities here. */
const safeTanh: Probe = () => {
  const x = new Float32Array([45, -45, 100]);
  const result = new Float32Array(3);
  const got = compute({ body: "y[i] = tanh(x[i]);", inputs: { x }, result, threads: 3, options: { mathMode: "safe" } });
  expectNumbers(got, [1, -1, 1], (index) => `tanh(${x[index]}) in the safe mode`);
  return "tanh(45) is 1 in the safe mode";
};

export const numberProbes = {
  denormals,
  "narrow-rounding": narrowRounding,
  "precise-rounding": preciseRounding,
  "extended-arithmetic": extendedArithmetic,
  "division-by-zero": integerDivisionByZero,
  "integer-shifts": shifts,
  "fast-functions": fastFunctions,
  "safe-tanh": safeTanh,
} satisfies Readonly<Record<string, Probe>>;
