/** An error that the device finds later affects the tensors that depend on it, and nothing else. */
import { afterEach, describe, expect, test } from "bun:test";
import { forgetFailures } from "../../../src/backend/failure.ts";
import { metalContext } from "../../../src/backend/metal/context.ts";
import { withStrict } from "../../../src/backend/policy.ts";
import * as orchard from "../../../src/index.ts";
import {
  add,
  crossEntropy,
  embedding,
  embeddingBag,
  gather,
  indexSelect,
  mul,
  oneHot,
  ShapeError,
  sum,
  type Tensor,
  tensor,
  withBackend,
} from "../../../src/index.ts";

const on = <Result>(body: () => Result): Result => withStrict(true, () => withBackend("metal", body));
const indices = (...values: bigint[]) => on(() => tensor(values));
/** The result is [1, 2, 0]. Its last element is invalid, because index 5 names no row. */
const bad = () => on(() => indexSelect(tensor([1, 2, 3]), indices(0n, 1n, 5n), { dim: 0 }));
const message = "[indexSelect] expected indices of 0 to 2, got 5 at [2]";

const throwsEachTime = (x: Tensor, text = message) => {
  for (let time = 0; time < 3; time++) expect(() => x.dataSync()).toThrow(text);
};

test("another tensor can be read; reading the failed one throws the error", () => {
  const failed = on(() => oneHot(indices(0n, 5n), { numClasses: 3 }));
  const fine = on(() => add(tensor(1), tensor(1)) as Tensor);
  expect(fine.item()).toBe(2);
  for (let time = 0; time < 3; time++) {
    expect(() => failed.dataSync()).toThrow(ShapeError);
    expect(() => failed.dataSync()).toThrow("[oneHot] expected indices of 0 to 2, got 5 at [1]");
    expect(fine.item()).toBe(2);
  }
});

const dependents: Readonly<Record<string, (x: Tensor) => Tensor>> = {
  "a result": (x) => add(x, 1) as Tensor,
  "a result of a result": (x) => sum(mul(add(x, 1) as Tensor, 2) as Tensor),
  "a view": (x) => x.reshape([3, 1]).transpose(0, 1),
  "a copy": (x) => orchard.clone(x.reshape([1, 3])),
  "a join": (x) => orchard.cat([tensor([1, 2]), x]),
  "a tensor that it was added to in place": (x) => orchard.add_(orchard.zeros([3]), x),
  "a part of which it was copied into": (x) => {
    const whole = orchard.zeros([2, 3]);
    orchard.copy_(orchard.select(whole, 0, 1), x);
    return whole;
  },
  "itself, changed in place": (x) => orchard.add_(x, 1),
  "a result of an index of it": (x) => indexSelect(tensor([1, 2, 3, 4]), orchard.toDType(x, "int64"), { dim: 0 }),
};
for (const [name, make] of Object.entries(dependents)) {
  test(`${name} has the error of the failed check`, () => throwsEachTime(on(() => make(bad()))));

  test(`${name} has the error of the failed check, also if all work is done when it is encoded`, () => {
    const failed = bad();
    metalContext().wait();
    const fine = on(() => tensor([7]));
    const made = on(() => make(failed));
    throwsEachTime(made);
    expect(fine.item()).toBe(7);
  });
}

test("using a tensor that is known to have failed throws at the call", () => {
  const failed = bad();
  throwsEachTime(failed);
  for (const make of Object.values(dependents).filter((own) => own !== dependents["a view"]))
    expect(() => on(() => make(failed)).dataSync()).toThrow(message);
  expect(() => withBackend("cpu", () => add(failed, 1))).toThrow(message);
});

test("passing a failed tensor to another backend throws at the call", () => {
  expect(() => withBackend("cpu", () => add(bad(), 1))).toThrow(message);
  expect(() => withBackend("reference", () => add(bad(), 1))).toThrow(message);
});

test("earlier tensors, the failed tensor's operands and later writes to it are correct", () => {
  const x = on(() => tensor([1, 2, 3]));
  const index = indices(0n, 9n, 1n, 2n);
  const before = on(() => mul(x, 2) as Tensor);
  const failed = on(() => indexSelect(x, index, { dim: 0 }));
  const target = on(() => orchard.add_(orchard.zeros([4]), failed));
  on(() => orchard.zero_(target));
  expect([x.toArray(), before.toArray(), index.toArray(), target.toArray()]).toEqual([
    [1, 2, 3],
    [2, 4, 6],
    [0n, 9n, 1n, 2n],
    [0, 0, 0, 0],
  ]);
  expect(() => failed.toArray()).toThrow("got 9 at [1]");
});

test("data() rejects, and async reads of other tensors do not", async () => {
  const [failed, fine] = [bad(), on(() => add(tensor([1, 2]), 1) as Tensor)];
  const [first, second, third] = await Promise.allSettled([failed.data(), fine.data(), failed.data()]);
  expect([first.status, second.status, third.status]).toEqual(["rejected", "fulfilled", "rejected"]);
});

test("an error persists through thousands of operations", () => {
  const failed = bad();
  let x: Tensor = on(() => tensor([0]));
  let y: Tensor = failed;
  for (let step = 0; step < 1500; step++) {
    x = on(() => add(x, 1) as Tensor);
    if (step % 100 === 0) y = on(() => add(y, 1) as Tensor);
  }
  expect(x.item()).toBe(1500);
  throwsEachTime(y);
  throwsEachTime(failed);
});

test("checks that passed are forgotten", () => {
  let x = on(() => tensor([1, 2, 3]));
  for (let step = 0; step < 300; step++) {
    x = on(() => indexSelect(x, indices(2n, 1n, 0n), { dim: 0 }));
    expect(x.storage.checks.length).toBeLessThan(200);
  }
  expect(x.toArray()).toEqual([1, 2, 3]);
  expect(x.storage.checks.length).toBe(0);
});

describe("gradients of failed tensors have their error", () => {
  const table = () => on(() => orchard.ones([4, 3], { requiresGrad: true }));
  const cases: Readonly<Record<string, (weight: Tensor) => Tensor>> = {
    embedding: (weight) => embedding(indices(1n, 7n), weight),
    embeddingBag: (weight) => embeddingBag(tensor([[1n, 7n]]), weight),
    gather: (weight) => gather(weight, tensor([[1n, 7n]]), { dim: 1 }),
    crossEntropy: (weight) => crossEntropy(weight, indices(0n, 1n, 7n, 2n)),
    indexSelect: (weight) => indexSelect(weight, indices(7n), { dim: 0 }),
  };
  for (const [name, make] of Object.entries(cases))
    test(name, () => {
      const [weight, other] = [table(), table()];
      on(() => {
        sum(make(weight)).backward();
        sum(mul(other, 2) as Tensor).backward();
      });
      throwsEachTime(weight.grad!, "got 7 at [");
      expect(weight.toArray()).toEqual(new Array(4).fill([1, 1, 1]));
      expect(other.grad!.toArray()).toEqual(new Array(4).fill([2, 2, 2]));
      expect(() => on(() => orchard.add_(weight.detach(), weight.grad!)).dataSync()).toThrow("got 7 at [");
    });

  test("a gradient from the caller stays unchanged, and results have the error", () => {
    const weight = table();
    const seed = on(() => tensor([1, 1, 1]));
    on(() => embedding(indices(7n), weight).reshape([3]).backward(seed));
    throwsEachTime(weight.grad!, "got 7 at [0]");
    expect(seed.toArray()).toEqual([1, 1, 1]);
  });

  test("backward() throws the error once it is known", () => {
    const weight = table();
    const loss = on(() => sum(embedding(indices(7n), weight)));
    expect(() => loss.item()).toThrow("got 7 at [0]");
    expect(() => on(() => loss.backward())).toThrow("got 7 at [0]");
    expect(weight.grad).toBe(null);
  });
});

test("both the indices and the offsets of bags are checked", () => {
  const weight = on(() => orchard.ones([4, 3]));
  const wrong = on(() => embeddingBag(indices(0n, 1n), weight, { offsets: tensor([0n, 5n]) }));
  throwsEachTime(wrong, "[embeddingBag] expected ascending offsets");
});

describe("if a command buffer fails as well", () => {
  afterEach(() => forgetFailures());

  test("only tensors that depend on an invalid index throw, with the error of the index", () => {
    const quiet = console.error;
    console.error = () => undefined;
    try {
      withBackend("metal", () => {
        const x = tensor([1, 2, 3]);
        x.dataSync();
        metalContext().injectFault("command-buffer");
        const failed = indexSelect(x, tensor([0n, 8n]), { dim: 0 });
        const after = add(failed, 1) as Tensor;
        const fine = add(x, 1) as Tensor;
        expect(fine.toArray()).toEqual([2, 3, 4]);
        throwsEachTime(failed, "got 8 at [1]");
        throwsEachTime(after, "got 8 at [1]");
      });
    } finally {
      console.error = quiet;
    }
  });
});
