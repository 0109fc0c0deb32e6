/** Memory that a caller shares with a tensor: if it changes or disappears, an error says so, and nothing crashes. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { backendNames } from "../../src/backend/names.ts";
import { environmentFlag } from "../../src/core/environment.ts";
import * as orchard from "../../src/index.ts";
import {
  AutogradError,
  crossEntropy,
  embedding,
  embeddingBag,
  fromArray,
  ones,
  type Tensor,
  tensor,
  withBackend,
} from "../../src/index.ts";
import { bunWords } from "../support/program.ts";

const hasMetal = !environmentFlag("ORCHARD_SKIP_METAL");
const backends = backendNames.filter((name) => name !== "metal" || hasMetal);

const library = join(import.meta.dir, "../../src/index.ts");

/** Transfers a buffer as `postMessage` with a transfer list does. */
const transfer = (array: { buffer: ArrayBufferLike }): void => {
  structuredClone(array.buffer, { transfer: [array.buffer as ArrayBuffer] });
};

/** An array over a buffer that can shrink. */
const resizable = (length: number): Float32Array<ArrayBuffer> =>
  new Float32Array(new ArrayBuffer(length * 4, { maxByteLength: length * 8 }));

const uses: Readonly<Record<string, (x: Tensor) => unknown>> = {
  add: (x) => x.add(1),
  sum: (x) => x.sum(),
  "a view's copy": (x) => orchard.clone(x.reshape([2, -1]).transpose(0, 1)),
  add_: (x) => orchard.add_(x, 1),
  zero_: (x) => orchard.zero_(x),
  "add_ from it": (x) => orchard.add_(orchard.zeros([x.size]), x),
  dataSync: (x) => x.dataSync(),
  toArray: (x) => x.toArray(),
};

for (const backend of backends)
  describe(`borrowed and transferred buffers on ${backend}`, () => {
    for (const [name, use] of Object.entries(uses)) {
      test(`${name} of a tensor whose buffer was transferred is an error`, () => {
        const array = new Float32Array(8);
        const x = fromArray(array);
        transfer(array);
        expect(() => withBackend(backend, () => use(x))).toThrow(
          /float32\[8\] .*buffer was transferred .*tensor\(array\)/,
        );
      });

      test(`${name} of a tensor whose buffer has shrunk is an error`, () => {
        const array = resizable(8);
        const x = fromArray(array);
        array.buffer.resize(16);
        expect(() => withBackend(backend, () => use(x))).toThrow(/float32\[8\] .*resized, from 32 to 16 bytes/);
      });
    }

    test("a buffer that has grown, or is longer than its array, is valid", () => {
      const array = resizable(8);
      const x = fromArray(array);
      array.fill(2);
      array.buffer.resize(48);
      expect(withBackend(backend, () => [x.sum().item(), x.add(1).sum().item()])).toEqual([16, 24]);
      array.buffer.resize(32);
      expect([...x.dataSync()]).toEqual(new Array(8).fill(2));
    });

    test("an array in the middle of a buffer that shrinks after its end stays valid", () => {
      const buffer = new ArrayBuffer(64, { maxByteLength: 64 });
      const x = fromArray(new Float32Array(buffer, 8, 2).fill(3));
      buffer.resize(16);
      expect(withBackend(backend, () => x.sum().item())).toBe(6);
    });
  });

test("data(), item() and a gradient report it too, and the printed text says why", async () => {
  const array = new Float32Array([2]);
  const x = fromArray(array, []);
  x.requiresGrad = true;
  const y = x.mul(x);
  transfer(array);
  expect(x.data()).rejects.toThrow(/transferred/);
  expect(() => x.item()).toThrow(/\[item\].*transferred/);
  expect(() => y.backward()).toThrow(/\[backward\].*transferred/);
  expect(String(x)).toMatch(/its buffer was transferred/);
});

test("memory shared with other threads is rejected by fromArray, and copied by tensor", () => {
  const shared = new Float32Array(new SharedArrayBuffer(8)).fill(1);
  expect(() => fromArray(shared)).toThrow(/SharedArrayBuffer, .*tensor\(array\) copies it/);
  expect(tensor(shared).sum().item()).toBe(2);
  const gone = new Float32Array(2);
  transfer(gone);
  expect(() => fromArray(gone)).toThrow(/buffer was transferred/);
});

test("a process whose buffers disappear between all calls ends normally", () => {
  const program = `
    import { fromArray, setBackend, ones, embedding, embeddingBag, sum } from "${library}";
    setBackend("cpu");
    let errors = 0;
    const attempt = (body) => {
      try { body(); } catch (error) { if (error.operation === undefined) throw error; errors++; }
    };
    const big = new Float32Array(1 << 20), x = fromArray(big);
    structuredClone(big.buffer, { transfer: [big.buffer] });
    attempt(() => sum(x).item());
    attempt(() => x.add(1));
    const array = new Float32Array(new ArrayBuffer(1 << 22, { maxByteLength: 1 << 22 })), z = fromArray(array);
    array.buffer.resize(0);
    attempt(() => sum(z).item());
    attempt(() => z.zero_());
    for (const operation of [embedding, embeddingBag]) {
      const tokens = new BigInt64Array(64), table = ones([4, 8], { requiresGrad: true });
      const loss = sum(operation(fromArray(tokens, [8, 8]), table));
      tokens.fill(1n << 40n);
      attempt(() => loss.backward());
    }
    console.log(errors);
  `;
  const { exitCode, signalCode, stdout, stderr } = Bun.spawnSync([...bunWords, "-e", program]);
  expect([exitCode, signalCode ?? null, stdout.toString().trim(), stderr.toString()]).toEqual([0, null, "6", ""]);
});

describe("a saved tensor that is changed between forward and backward", () => {
  const table = () => ones([4, 3], { requiresGrad: true });
  const refilled = <A extends Int32Array | BigInt64Array | Float32Array>(
    array: A,
    shape: number[],
    forward: (x: Tensor) => Tensor,
    value: A[number],
  ) => {
    const loss = orchard.sum(forward(fromArray(array as Int32Array, shape)));
    array.fill(value as never);
    return () => loss.backward();
  };
  const logits = () => orchard.randn([4, 3], { requiresGrad: true });
  const cases: Readonly<Record<string, () => () => void>> = {
    embedding: () => refilled(new BigInt64Array(4), [4], (i) => embedding(i, table()), 1n),
    "embedding, out of range": () => refilled(new Int32Array(4), [4], (i) => embedding(i, table()), 1 << 30),
    embeddingBag: () => refilled(new BigInt64Array(4), [2, 2], (i) => embeddingBag(i, table()), 1n << 40n),
    crossEntropy: () => refilled(new BigInt64Array(4), [4], (i) => crossEntropy(logits(), i), 2n),
    "crossEntropy's weights": () =>
      refilled(
        new Float32Array([1, 2, 3]),
        [3],
        (w) => crossEntropy(logits(), tensor([0n, 1n, 2n, 0n]), { weight: w }),
        9,
      ),
    gather: () =>
      refilled(new BigInt64Array(4), [4, 1], (i) => orchard.gather(logits(), i as Tensor<"int64">, { dim: 1 }), 1n),
    indexSelect: () =>
      refilled(new BigInt64Array(2), [2], (i) => orchard.indexSelect(logits(), i as Tensor<"int64">, { dim: 0 }), 1n),
    scatterAdd: () =>
      refilled(
        new BigInt64Array(4),
        [4, 1],
        (i) => orchard.scatterAdd(orchard.zeros([4, 3]), i as Tensor<"int64">, logits(), { dim: 1 }),
        1n,
      ),
    "a factor": () => refilled(new Float32Array(3).fill(2), [3], (x) => x.mul(table()) as Tensor, 5),
    "a matrix": () => refilled(new Float32Array(6), [2, 3], (x) => orchard.matmul(table(), x.transpose(0, 1)), 5),
  };
  for (const [name, changed] of Object.entries(cases))
    for (const backend of ["cpu", "reference"] as const)
      test(`${name} is an error on ${backend}`, () => {
        const backward = withBackend(backend, changed);
        expect(() => withBackend(backend, backward)).toThrow(AutogradError);
        const again = withBackend(backend, changed);
        expect(() => withBackend(backend, again)).toThrow(/was changed between forward and backward.*tensor\(array\)/);
      });

  test("restored values, later changes, and changes outside the saved part are permitted", () => {
    const tokens = new BigInt64Array([0n, 1n, 2n, 3n]);
    const weight = table();
    const indices = fromArray(tokens);
    for (let step = 0; step < 3; step++) {
      const loss = orchard.sum(embedding(orchard.slice(indices, { start: 0, end: 2 }), weight));
      tokens[3] = BigInt(step); // outside of the slice
      loss.backward();
      tokens.fill(BigInt(step));
    }
    // pairs of alternating rows: 0 and 1, 0 and 0, 1 and 1
    expect([...weight.grad!.sum({ dim: 1 }).dataSync()]).toEqual([9, 9, 0, 0]);
  });

  test("views of one array are distinguished", () => {
    const tokens = new BigInt64Array([0n, 1n, 2n, 3n]);
    const weight = table();
    const indices = orchard.slice(fromArray(tokens), { start: 2, end: 4 });
    const first = orchard.sum(embedding(indices, weight));
    tokens[1] = 0n; // before the slice
    first.backward();
    const second = orchard.sum(embedding(indices, weight));
    tokens[2] = 3n;
    expect(() => second.backward()).toThrow(/int64\[2\] that embedding needs .*was changed/);
    tokens[2] = 2n; // unchanged
    second.backward();
    expect([...weight.grad!.sum({ dim: 1 }).dataSync()]).toEqual([0, 0, 6, 6]);
  });

  test.if(hasMetal)("metal has a separate copy: gradients use the tokens of the forward pass", () => {
    withBackend("metal", () => {
      const tokens = new BigInt64Array([0n, 1n]);
      const weight = table();
      const loss = orchard.sum(embedding(fromArray(tokens), weight));
      tokens.fill(3n);
      loss.backward();
      expect([...weight.grad!.sum({ dim: 1 }).dataSync()]).toEqual([3, 3, 0, 0]);
    });
  });

  test.if(hasMetal)("elements that moved to a device since are compared there", () => {
    const array = new Float32Array([1, 2]);
    const x = fromArray(array);
    const weight = tensor([3, 4], { requiresGrad: true });
    const loss = withBackend("cpu", () => orchard.sum(x.mul(weight) as Tensor));
    withBackend("metal", () => x.add(1).dataSync()); // moves x to the device
    array.fill(9); // x no longer uses the array
    withBackend("cpu", () => loss.backward());
    expect([...weight.grad!.dataSync()]).toEqual([1, 2]);
  });

  test("gradients of gradients of a weighted loss use the saved weights", () => {
    const array = new Float32Array([1, 2, 3]);
    const x = logits();
    const loss = crossEntropy(x, tensor([0n, 1n, 2n, 0n]), { weight: fromArray(array) });
    array.fill(1);
    expect(() => orchard.grad(loss, [x], { createGraph: true })).toThrow(/was changed between forward and backward/);
  });
});
