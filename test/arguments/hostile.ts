/** Values that no function expects, created anew for each call: the fuzz test passes them everywhere. */
import { ones, zeros } from "../../src/ops/index.ts";
import { Tensor } from "../../src/tensor/tensor.ts";

export interface Hostile {
  readonly name: string;
  readonly make: () => unknown;
}

const row = (name: string, make: () => unknown): Hostile => ({ name, make });
const numbers = [
  0,
  -0,
  1,
  -1,
  2,
  -2,
  7,
  0.5,
  -1.5,
  Number.NaN,
  Infinity,
  -Infinity,
  2 ** 36,
  2 ** 53,
  -(2 ** 53),
  2 ** 64,
  1e308,
  5e-324,
];

function revoked(): unknown {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

function transferred(): Float32Array {
  const array = new Float32Array(4);
  structuredClone(array.buffer, { transfer: [array.buffer] });
  return array;
}

function gone(): Tensor {
  const x = ones([2]);
  x.dispose();
  return x;
}

function cyclic(): unknown[] {
  const list: unknown[] = [];
  list.push(list);
  return list;
}

/** The error that a callback throws, which the caller has to receive. */
export class CallersError extends Error {}
const callersFunction = (): never => {
  throw new CallersError("the caller's function failed as intended");
};

const fail = (): never => {
  throw new TypeError("expected the value's code not to run, but it ran");
};

/** Hostile values. Texts and numbers among them are valid for some functions, and invalid for others. */
export const hostiles: readonly Hostile[] = [
  ...numbers.map((value) => row(Object.is(value, -0) ? "-0" : String(value), () => value)),
  ...[0n, -1n, 3n, 2n ** 63n, 2n ** 70n].map((value) => row(`${value}n`, () => value)),
  ...["", "0", "1", "mean", "float32", "\0", "constructor", "__proto__", "x".repeat(10_000)].map((value) =>
    row(`the text ${JSON.stringify(value.slice(0, 12))}`, () => value),
  ),
  row("undefined", () => undefined),
  row("null", () => null),
  row("true", () => true),
  row("false", () => false),
  row("a symbol", () => Symbol("a")),
  row("a registered symbol", () => Symbol.for("dim")),
  row("a function", () => () => 1),
  row("a function that throws", () => callersFunction),
  row("a class", () => class Own {}),
  row("an empty object", () => ({})),
  row("an object without a prototype", () => Object.create(null)),
  row("an object of unknown options", () => ({ axis: 1, keep_dim: true })),
  row("an object with a length", () => ({ length: 2, 0: 1, 1: 1 })),
  row("an object that can't be a text", () => ({ toString: fail, valueOf: fail })),
  row("an object that can't be a primitive", () => ({ [Symbol.toPrimitive]: fail })),
  row("an option that throws", () => Object.defineProperty({}, "dim", { get: fail, enumerable: true })),
  row("an object that can't be iterated", () => ({ [Symbol.iterator]: fail })),
  row("an object that says it is a tensor", () => ({ shape: [2], dtype: "float32", size: 2, rank: 1, describe: fail })),
  row("a frozen object", () => Object.freeze({ dim: 0 })),
  row("a proxy", () => new Proxy({}, { get: fail, has: fail, ownKeys: fail, getPrototypeOf: fail })),
  row("a revoked proxy", revoked),
  row("an array behind a proxy", () => new Proxy([1, 2], {})),
  row("an empty array", () => []),
  row("[0]", () => [0]),
  row("[1, 2]", () => [1, 2]),
  row("[-1]", () => [-1]),
  row("[0.5]", () => [0.5]),
  row("[NaN]", () => [Number.NaN]),
  row("[2 ** 53]", () => [2 ** 53]),
  row("nine sizes", () => [1, 1, 1, 1, 1, 1, 1, 1, 1]),
  row("an array with a hole", () => Object.assign(new Array(3), { 0: 1, 2: 2 })),
  row("an array of nothing but holes", () => new Array(2 ** 32 - 1)),
  row("an array of null", () => [null]),
  row("an array of texts", () => ["0"]),
  row("an array of symbols", () => [Symbol("a")]),
  row("an array that holds itself", cyclic),
  row("an array with a getter that throws", () => Object.defineProperty([1, 2], 0, { get: fail, configurable: true })),
  row("a tensor and null", () => [ones([2]), null]),
  row("an array of objects that throw", () => [{ toString: fail, valueOf: fail }]),
  row("a Float32Array", () => new Float32Array([1, 2])),
  row("a BigInt64Array", () => new BigInt64Array(2)),
  row("an array of clamped bytes", () => new Uint8ClampedArray(2)),
  row("an array of 16-bit integers", () => new Int16Array(2)),
  row("an array that was transferred", transferred),
  row("a DataView", () => new DataView(new ArrayBuffer(8))),
  row("an ArrayBuffer", () => new ArrayBuffer(8)),
  row("shared memory", () => new Int32Array(new SharedArrayBuffer(8))),
  row("a Date", () => new Date(0)),
  row("a wrong Date", () => new Date(Number.NaN)),
  row("a Map", () => new Map([["dim", 0]])),
  row("a Set", () => new Set([1])),
  row("a regular expression", () => /dim/),
  row("a promise", () => Promise.resolve(1)),
  row("an Error", () => new Error("none")),
  row("a boxed number", () => Object(1)),
  row("a boxed text", () => Object("mean")),
  row("the global object", () => globalThis),
  row("a tensor", () => ones([2])),
  row("a tensor of integers", () => ones([2, 3], { dtype: "int64" })),
  row("a tensor of bools", () => ones([2, 3], { dtype: "bool" })),
  row("a tensor without elements", () => zeros([0, 3])),
  row("a tensor without axes", () => ones([])),
  row("a tensor of eight axes", () => ones([1, 1, 1, 1, 1, 1, 1, 2])),
  row("a tensor that was disposed of", gone),
  row("a look-alike of a tensor", () => Object.create(Tensor.prototype)),
  row("the class of tensors", () => Tensor),
  row("a proxy of a tensor", () => new Proxy(ones([2]), {})),
];
