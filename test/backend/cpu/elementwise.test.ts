/**
 * Properties that vectorized elementwise operations must keep, on each instruction set: a result does not depend on its
 * position in a row or on adjacent elements, and quotients are not rounded before they are truncated.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { configure, cpuLibrary } from "../../../src/backend/cpu/loader.ts";
import { cpuInfo } from "../../../src/backend/cpu/report.ts";
import { withBackend } from "../../../src/backend/policy.ts";
import { elu } from "../../../src/ops/activation/elu.ts";
import { gelu, geluGradient, geluTanhGradient } from "../../../src/ops/activation/gelu.ts";
import { hardswish } from "../../../src/ops/activation/hardswish.ts";
import { logSigmoid } from "../../../src/ops/activation/log_sigmoid.ts";
import { mish } from "../../../src/ops/activation/mish.ts";
import { sigmoid } from "../../../src/ops/activation/sigmoid.ts";
import { silu } from "../../../src/ops/activation/silu.ts";
import { softplus } from "../../../src/ops/activation/softplus.ts";
import { tanhshrink } from "../../../src/ops/activation/tanhshrink.ts";
import { tensor } from "../../../src/ops/creation/tensor.ts";
import { floorDivide, fmod, remainder } from "../../../src/ops/elementwise/division.ts";
import { erf } from "../../../src/ops/elementwise/erf.ts";
import { exp } from "../../../src/ops/elementwise/exponential.ts";
import { tanh } from "../../../src/ops/elementwise/hyperbolic.ts";
import { pow } from "../../../src/ops/elementwise/power.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { Random } from "../../ops/samples.ts";
import { ulpOf } from "../../ops/tolerance.ts";

const random = new Random(77);
const uniform = (count: number, low: number, high: number) =>
  Float32Array.from({ length: count }, () => low + random.next() * (high - low));

const computed = (result: Tensor): Float32Array => result.dataSync() as Float32Array;
const bits = (values: Float32Array): number[] => [...new Uint32Array(values.slice().buffer)];

const approximate = "tanh";
const functions: Readonly<Record<string, (x: Tensor, y: Tensor) => Tensor>> = {
  exp: (x) => exp(x),
  tanh: (x) => tanh(x),
  sigmoid: (x) => sigmoid(x),
  erf: (x) => erf(x),
  gelu: (x) => gelu(x),
  "gelu by tanh": (x) => gelu(x, { approximate }),
  silu: (x) => silu(x),
  softplus: (x) => softplus(x),
  hardswish: (x) => hardswish(x),
  mish: (x) => mish(x),
  logSigmoid: (x) => logSigmoid(x),
  tanhshrink: (x) => tanhshrink(x),
  elu: (x) => elu(x),
  "gradient of gelu": (x, y) => geluGradient(y, x),
  "gradient of gelu by tanh": (x, y) => geluTanhGradient(y, x),
  pow,
  floorDivide,
  fmod,
  remainder,
};

/** Operands of one row, of which the first 40 are positive. */
const count = 83;
const x = Float32Array.of(...uniform(40, 0.1, 9), ...uniform(count - 40, -9, 9));
const y = uniform(count, -3, 3);

/** Quotients just below a whole number, which division rounds up to it, and their neighbors. */
function belowWholeNumbers(pairs: number): { a: Float32Array; b: Float32Array } {
  const b = uniform(pairs, 0.5, 4);
  const products = b.map((divisor) => divisor * random.integer(1, 2 ** 24 - 1));
  const steps = new Int32Array(products.buffer);
  for (let index = 0; index < pairs; index++) steps[index] += random.integer(-1, 1);
  for (let index = 0; index < pairs; index += 2) products[index] = -products[index];
  return { a: products, b };
}

/** a = whole·b + rest in whole numbers: both are multiples of 2^-24 here. */
function divided(a: number, b: number): { floor: number; rest: number } {
  const [n, d] = [BigInt(a * 2 ** 24), BigInt(b * 2 ** 24)];
  const rest = n % d;
  const floor = n / d - (rest !== 0n && rest < 0n !== d < 0n ? 1n : 0n);
  return { floor: Math.fround(Number(floor)), rest: Number(rest) / 2 ** 24 };
}

const { native } = cpuLibrary();
const { isa: initial, isas } = cpuInfo(native);
afterAll(() => configure(native, "isa", initial));

describe.each(isas)("elementwise functions on cpu with %s", (isa) => {
  const on = (body: () => void) => () => {
    configure(native, "isa", isa);
    withBackend("cpu", body);
  };

  for (const [name, compute] of Object.entries(functions))
    test(
      `${name} has the same bits at every position`,
      on(() => {
        const whole = bits(computed(compute(tensor(x), tensor(y))));
        for (const [begin, end] of [
          [1, count],
          [0, 40],
          [3, 20],
          [17, 18],
          [40, count - 1],
        ] as const) {
          const part = compute(tensor(x.slice(begin, end)), tensor(y.slice(begin, end)));
          expect(bits(computed(part))).toEqual(whole.slice(begin, end));
        }
      }),
    );

  test(
    "pow has the same bits next to elements of the slow path",
    on(() => {
      const bases = Float32Array.of(...uniform(60, 0.01, 30), 0, 0, 0, 1);
      const exponents = Float32Array.of(...uniform(60, -20, 20), 0.5, -0.5, 1e-20, -1e20);
      const plain = bits(computed(pow(tensor(bases), tensor(exponents))));
      for (const special of [0, -2, Number.POSITIVE_INFINITY, Number.NaN, 1e-40]) {
        const beside = computed(
          pow(tensor(Float32Array.of(...bases, special)), tensor(Float32Array.of(...exponents, 3))),
        );
        expect(bits(beside.slice(0, 64))).toEqual(plain);
        expect([...beside.slice(60, 64)]).toEqual([0, Number.POSITIVE_INFINITY, 0, 1]);
        expect(beside[64]).toBe(Math.fround(special ** 3));
        const others = new Float32Array(40).fill(special);
        const many = pow(
          tensor(Float32Array.of(...bases, ...others)),
          tensor(Float32Array.of(...exponents, ...others)),
        );
        expect(bits(computed(many).slice(0, 64))).toEqual(plain);
      }
    }),
  );

  test(
    "pow is within 3 units in the last place, also if the exponent has most digits",
    on(() => {
      const near = uniform(20_000, 0.5, 2);
      const exponents = near.map((base) => (random.next() * 276 - 149) / Math.log2(base));
      const results = computed(pow(tensor(near), tensor(exponents)));
      const wrong = results.findIndex((got, at) => {
        const wanted = near[at] ** exponents[at];
        return Math.abs(wanted) < 3.4e38 && Math.abs(got - wanted) > 3 * ulpOf("float32", wanted);
      });
      expect(
        wrong < 0 ? undefined : { base: near[wrong], exponent: exponents[wrong], got: results[wrong] },
      ).toBeUndefined();
    }),
  );

  test(
    "quotients just below whole numbers are not rounded up before truncation, and remainders are exact",
    on(() => {
      const { a, b } = belowWholeNumbers(4000);
      const operands = [tensor(a), tensor(b)] as const;
      const wanted = Array.from(a, (value, index) => divided(value, b[index]));
      expect([...computed(floorDivide(...operands))]).toEqual(wanted.map(({ floor }) => floor));
      expect([...computed(fmod(...operands))].map((rest) => rest + 0)).toEqual(wanted.map(({ rest }) => rest + 0));
    }),
  );

  test(
    "erf never exceeds 1; softplus decreases to the smallest subnormal number",
    on(() => {
      expect([...computed(erf(tensor([4, -4, 1 / 0, -1 / 0])))]).toEqual([1, -1, 1, -1]);
      expect(computed(erf(tensor(uniform(5000, 3, 5)))).every((value) => value <= 1)).toBe(true);
      expect(computed(softplus(tensor([-103])))[0]).toBe(Math.fround(Math.exp(-103)));
      expect([...computed(softplus(tensor([-1 / 0, 1 / 0, Number.NaN])))]).toEqual([0, 1 / 0, Number.NaN]);
    }),
  );
});
