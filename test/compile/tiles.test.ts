/**
 * Chains of cheap float32 operations on cpu, whose values stay in registers, drawn: operands of every layout, in any
 * order, with special numbers. The bits match plain calls.
 */
import { expect, test } from "bun:test";
import * as orchard from "../../src/index.ts";
import { compile, type Tensor, tensor, withBackend } from "../../src/index.ts";
import { hash, Random } from "../ops/samples.ts";
import { repeats } from "../support/repeats.ts";

const ofOne: readonly ((x: Tensor) => Tensor)[] = [
  ...[orchard.neg, orchard.abs, orchard.sign, orchard.square, orchard.relu, orchard.floor, orchard.ceil],
  ...[orchard.round, orchard.trunc, orchard.frac, orchard.reciprocal, orchard.sqrt, orchard.rsqrt],
  ...[orchard.hardswish, orchard.hardsigmoid, orchard.softsign],
  ...[orchard.exp, orchard.tanh], // these have row functions only
];
type OfTwo = (a: Tensor, b: Tensor) => Tensor;
const ofTwo = [
  ...[orchard.add, orchard.sub, orchard.mul, orchard.div, orchard.maximum, orchard.minimum, orchard.fmax],
  ...[orchard.fmin, orchard.copysign, orchard.heaviside],
  orchard.prelu, // its weight has one element
  orchard.pow,
] as readonly OfTwo[];

/** Whole tiles of any instruction set, rests of tiles, and rows of both. */
const shapes = [[4096], [4099], [70_001], [40, 128], [33, 256], [11, 384], [5, 1024], [3, 1500], [70, 130]];

const special = [Infinity, -Infinity, 0, -0, 1e-41, -3e38, 1, -1, 0.5];
const nans = [0x7fc00123, 0xffc00456];

interface Operands {
  readonly x: Tensor;
  readonly y: Tensor;
  readonly row: Tensor;
  readonly column: Tensor;
  readonly one: Tensor;
}

function drawOperands(shape: readonly number[], random: Random): Operands {
  const draw = (sizes: readonly number[]) => {
    const values = new Float32Array(sizes.reduce((all, size) => all * size, 1)).map(() => 4 * random.next() - 2);
    for (let at = 0; at < values.length; at += random.integer(1, 400)) values[at] = special[random.integer(0, 8)];
    const bits = new Uint32Array(values.buffer);
    for (let at = random.integer(0, 999); at < values.length; at += random.integer(50, 2000)) bits[at] = nans[at % 2];
    return tensor(values).reshape(sizes);
  };
  const [last, before] = [shape.at(-1)!, shape.slice(0, -1)];
  return { x: draw(shape), y: draw(shape), row: draw([last]), column: draw([...before, 1]), one: draw([1]) };
}

type Step = (values: readonly Tensor[], operands: Operands) => Tensor;

function drawStep(random: Random, count: number): Step {
  const before = random.next() < 0.75 ? count - 1 : random.integer(0, count - 1);
  if (random.next() < 0.35) {
    const operation = ofOne[random.integer(0, ofOne.length - 1)];
    return (values) => operation(values[before]);
  }
  const operation = ofTwo[random.integer(0, ofTwo.length - 1)];
  const kind = random.integer(0, 9);
  const [other, number] = [random.integer(0, count - 1), [0.5, -3, 1e30, 0][random.integer(0, 3)]];
  const isSwapped = random.next() < 0.5 && operation !== (orchard.prelu as OfTwo);
  return (values, { row, column, one }) => {
    const a = values[before];
    const scalar = tensor(number);
    const choices = [values[other], values[other], values[other], a, row, column, one, scalar, scalar, scalar];
    const b = operation === (orchard.prelu as OfTwo) ? one : choices[kind];
    return isSwapped ? operation(b, a) : operation(a, b);
  };
}

function drawChain(seed: number) {
  const random = new Random(hash(`tiles ${seed}`));
  const shape = shapes[random.integer(0, shapes.length - 1)];
  const steps = Array.from({ length: random.integer(2, 14) }, (_, at) => drawStep(random, 2 + at));
  const isReturned = steps.map(() => random.next() < 0.15);
  const fn = (operands: Operands): readonly Tensor[] => {
    const values = [operands.x, operands.y];
    for (const step of steps) values.push(step(values, operands));
    return values.filter((_, at) => at === values.length - 1 || isReturned[at - 2]);
  };
  return { fn, draw: () => drawOperands(shape, random) };
}

/** Hashes with one NaN for all: which of two NaNs a sum returns is left to the compiler. */
const bits = (values: readonly Tensor[]) =>
  values
    .map((value) => orchard.where(value.isnan(), tensor(NaN), value))
    .map((value) => Bun.hash(value.contiguous().clone().storage.hostBytes()).toString());

const seeds = Array.from({ length: repeats({ usual: 60, all: 2000 }) }, (_, seed) => seed);

test.each(seeds)("chains of tiles have the bits of plain calls, seed %d", (seed) =>
  withBackend("cpu", () =>
    orchard.tidy(() => {
      const { fn, draw } = drawChain(seed);
      const compiled = compile(fn);
      for (let call = 0; call < 4; call++) {
        const operands = draw();
        expect(bits(compiled(operands))).toEqual(bits(fn(operands)));
      }
      expect(compiled.explain()).toContain("replays");
      compiled.reset();
    }),
  ),
);

test.each([4096, 70_001, 2 ** 22 + 17])("chains that change their state in place, of %d elements", (count) =>
  withBackend("cpu", () =>
    orchard.tidy(() => {
      const random = new Random(hash(`in place ${count}`));
      const start = new Float32Array(count).map(() => random.next() - 0.5);
      const [state, plain] = [tensor(start), tensor(start)];
      const step = (x: Tensor, of: Tensor) => {
        of.mul_(0.5).add_(x);
        const result = of.abs().sub(x);
        of.sub_(result);
        return result.maximum(of);
      };
      const compiled = compile((x: Tensor) => step(x, state), { state });
      for (let call = 0; call < 5; call++) {
        const x = tensor(new Float32Array(count).map(() => random.next() - 0.5));
        expect(bits([compiled(x), state])).toEqual(bits([step(x, plain), plain]));
      }
      expect(compiled.explain()).toMatch(/[2-6] of them fused into 1/);
      compiled.reset();
    }),
  ),
);

/** Later values of a chain take the buffers of earlier ones, which the same steps read. */
const reusing: Readonly<Record<string, (x: Tensor, y: Tensor) => Tensor>> = {
  "of elements": (x, y) => {
    const shifted = x.exp().mul(y).add(3);
    return shifted.abs().sub(shifted);
  },
  "of one element per row": (x) => {
    const rows = { dim: -1, keepdim: true } as const;
    return x.sub(x.mean(rows)).square().mean(rows);
  },
};

test.each(Object.keys(reusing))("chains that reuse buffers %s", (name) =>
  withBackend("cpu", () =>
    orchard.tidy(() => {
      for (const shape of [[70_001], [64, 128], [9, 1500], [150, 384]]) {
        const compiled = compile(reusing[name]);
        for (let call = 0; call < 4; call++) {
          const [x, y] = [orchard.randn(shape), orchard.randn(shape)];
          expect(bits([compiled(x, y)])).toEqual(bits([reusing[name](x, y)]));
        }
        compiled.reset();
      }
    }),
  ),
);
