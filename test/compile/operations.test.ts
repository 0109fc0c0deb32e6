/** Runs every operation through `compile`: replays equal plain calls bit for bit, and unsupported ones are listed. */
import { describe, expect, test } from "bun:test";
import { getBackend, withBackend } from "../../src/backend/policy.ts";
import { compile } from "../../src/compile/compile.ts";
import { CompileError } from "../../src/compile/errors.ts";
import { leavesOf, treeOf, valueIn } from "../../src/compile/tree.ts";
import * as operations from "../../src/ops/index.ts";
import { defaultGenerator, manualSeed } from "../../src/random/generator.ts";
import { bytesOf, isFloat } from "../../src/tensor/dtype.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { calls, makeOperands, type OperationName, operationNames } from "../ops/calls.ts";
import { hash, Random } from "../ops/samples.ts";
import { checkKernels } from "../support/checked.ts";
import { isExhaustive, repeats, usually } from "../support/repeats.ts";

checkKernels();

type Call = (...values: readonly unknown[]) => unknown;

const functions = operations as unknown as Readonly<Record<string, Call>>;

/**
 * Operations that change an argument, that read elements in JavaScript because shapes or values depend on them, or that
 * compute with random numbers in JavaScript. (Cross entropy reads the sum of class weights.)
 */
const refused: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    ["add_", "sub_", "mul_", "div_", "fill_", "zero_", "copy_", "maskedFill_"].map((name) => [name, "writes"]),
  ),
  ...Object.fromEntries(
    ["allClose", "equal", "bincount", "histc", "histogram", "maskedScatter", "maskedSelect", "nonzero", "ctcLoss"].map(
      (name) => [name, "read"],
    ),
  ),
  crossEntropy: "read",
  randperm: "random",
};

/** Operations whose plain calls depend on an argument's offset, which compiled ones don't see. */
const ofOffset: ReadonlySet<string> = new Set(["asStrided", "viewAsComplex"]);

/** Calls of a compiled function: two or three recordings, then replays. */
const CALLS = 5;

describe("replays on cpu are bit-identical to plain calls", () => {
  test.each(operationNames)("replays of %s are bit-identical to plain calls on cpu", (name) => {
    for (let draw = 0; draw < repeats({ usual: 1, all: 12 }); draw++)
      withBackend("cpu", () => checkOperation(name, new Random(hash(`${name} ${draw}`)), refused));
  });
});

/** On metal, more operations read elements in JavaScript. crossEntropy does not, as the device sums class weights. */
const { crossEntropy: _, ...others } = refused;
const refusedOnMetal: Readonly<Record<string, string>> = {
  ...others,
  pdist: "read",
  trilIndices: "read",
  triuIndices: "read",
  unique: "read",
  uniqueConsecutive: "read",
};

/** Operations that run plainly on metal: one computes in float64, the other shares memory with JavaScript. */
const plainOnMetal: ReadonlySet<string> = new Set(["floatPower", "fromArray"]);

/** Operations on typed arrays, whose contents may differ in each call. */
const ofArray: ReadonlySet<string> = new Set(["fromArray", "tensor"]);

/** Operations whose results have undefined contents. */
const undefinedContents: ReadonlySet<string> = new Set(["empty", "emptyLike"]);

describe("replays on metal are bit-identical to plain calls", () => {
  const drawn = usually(operationNames, (name) => hash(`metal ${name}`) % 4 === 0);
  test.each(drawn.filter((name) => !undefinedContents.has(name)))(
    "replays of %s are bit-identical to plain calls on metal",
    (name) => {
      for (let draw = 0; draw < repeats({ usual: 1, all: 12 }); draw++)
        withBackend("metal", () => checkOperation(name, new Random(hash(`${name} ${draw}`)), refusedOnMetal));
    },
  );
});

function checkOperation(name: OperationName, random: Random, refusals: Readonly<Record<string, string>>): void {
  const call = functions[name];
  const layout = ofOffset.has(name) ? 0 : random.integer(0, 2);
  const size = 4 + 2 * random.integer(0, 2);
  const fuse = getBackend() === "cpu" || isExhaustive; // on metal, each chain requires the compilation of a kernel
  const compiled = compile((...values: readonly unknown[]) => call(...values), { fuse });
  const seed = random.integer(0, 999);
  const first = calls[name](drawn(random, size, layout));
  let refusal: unknown;
  for (let at = 0; at < CALLS; at++) {
    const values = withTensors(first, calls[name](drawn(random, size, layout)));
    manualSeed(seed + at);
    const expected = bitsOf(call(...values.map(copied)));
    const advance = defaultGenerator.getState().offset;
    manualSeed(seed + at);
    try {
      expect(bitsOf(compiled(...values))).toEqual(expected);
    } catch (error) {
      if (!(error instanceof CompileError)) throw error;
      refusal = error;
      break;
    }
    expect(defaultGenerator.getState().offset).toBe(advance);
  }
  const code = refusal instanceof CompileError ? refusal.code : undefined;
  expect(`${name} ${code}`).toBe(`${name} ${refusals[name]}`);
  const isPlain = ofArray.has(name) || (getBackend() === "metal" && plainOnMetal.has(name));
  if (code === undefined) expect(compiled.explain()).toMatch(isPlain ? /[45] calls plain/ : /[2-9] replays/);
}

/** The values of integer operands: indices are in range for every size. */
const ranges: Readonly<Record<string, readonly [number, number]>> = {
  integers: [1, 5],
  bytes: [1, 2],
  mask: [0, 1],
  indices: [0, 1],
  places: [0, 1],
};

/** Operands with drawn elements, the matrices transposed or part of a larger one. */
function drawn(random: Random, size: number, layout: number) {
  const operands = makeOperands(size) as Record<string, Tensor>;
  const filled = Object.entries(operands).map(([key, tensor]) => [key, fill(key, tensor, random, layout)]);
  return Object.fromEntries(filled) as ReturnType<typeof makeOperands>;
}

function fill(key: string, { shape, dtype }: Tensor, random: Random, layout: number): Tensor {
  const pick = (count: number): number[] =>
    Array.from({ length: count }, () => {
      if (isFloat(dtype)) return 0.05 + 0.9 * random.next();
      const [least, most] = ranges[key];
      return random.integer(least, most);
    });
  if (dtype === "complex64") {
    const [real, imaginary] = [0, 1].map(() => fill(key, operations.zeros(shape), random, layout));
    return operations.complex(real, imaginary);
  }
  const count = shape.reduce((product, each) => product * each, 1);
  const make = (sizes: readonly number[]) =>
    operations.tensor(pick(sizes.reduce((product, each) => product * each, 1)), { dtype, shape: sizes });
  if (shape.length !== 2 || layout === 0 || count === 0) return make(shape);
  if (layout === 1) return operations.transpose(make([shape[1], shape[0]]), 0, 1);
  return operations.narrow(make([shape[0], shape[1] + 2]), 1, 1, shape[1]);
}

/**
 * Replaces the tensors in a call's arguments by another call's tensors. Everything else must stay the same, including
 * arrays.
 */
function withTensors(values: readonly unknown[], others: readonly unknown[]): readonly unknown[] {
  const leaves = leavesOf(treeOf(others, (tensor) => tensor));
  let next = 0;
  return valueIn(
    treeOf(values, () => leaves[next++]),
    (tensor) => tensor,
  ) as readonly unknown[];
}

/** Operations in place must not change the operands of the compiled call. */
const copied = (value: unknown): unknown =>
  valueIn(
    treeOf(value, (tensor) => tensor),
    (leaf) => (leaf.isContiguous ? operations.clone(leaf) : leaf),
  );

/** The dtype, the shape and the bits of each tensor in a result; other values as they are. */
function bitsOf(result: unknown): unknown {
  return valueIn(treeOf(result, bitsOfTensor), (leaf) => leaf);
}

function bitsOfTensor(tensor: Tensor): unknown {
  const { dtype, shape, size } = tensor;
  const stored = operations
    .clone(tensor)
    .storage.hostBytes()
    .subarray(0, size * bytesOf(dtype)); // without padding
  return [dtype, [...shape], Buffer.from(stored).toString("hex")];
}
