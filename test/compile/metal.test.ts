/** Tests programs on metal: their memory, checks of values, and failures of the device. */
import { describe, expect, test } from "bun:test";
import { statusNames } from "../../src/backend/metal/abi.ts";
import { metalContext } from "../../src/backend/metal/context.ts";
import * as orchard from "../../src/index.ts";
import { compile, nn, ones, optim, randn, type Tensor, tensor, withBackend } from "../../src/index.ts";
import { Random } from "../ops/samples.ts";
import { useChecker } from "../support/checked.ts";

useChecker();

const drawnIntegers = (random: Random, count: number): number[] =>
  Array.from({ length: count }, () => random.integer(0, 50));

const onMetal = (body: () => void) => () => withBackend("metal", () => orchard.tidy(body));

/** A training step of a network with two layers. */
function makeStep() {
  orchard.manualSeed(4);
  const model = new nn.Sequential(new nn.Linear(16, 32), new nn.ReLU(), new nn.Linear(32, 4));
  const optimizer = new optim.AdamW(model.parameters(), { lr: 0.01 });
  const step = (x: Tensor, y: Tensor) => {
    const loss = orchard.crossEntropy(model.forward(x), y);
    loss.backward();
    optimizer.step();
    optimizer.zeroGrad();
    return loss;
  };
  return { model, optimizer, step, compiled: compile(step, { state: [model, optimizer] }) };
}

test(
  "a replay allocates the result and the numbers to check, and dispatches less than the plain call",
  onMetal(() => {
    const { step, compiled } = makeStep();
    const [x, y] = [randn([8, 16]), orchard.randint(0, 4, [8])];
    for (let call = 0; call < 3; call++) step(x, y);
    const plain = counted(() => step(x, y));
    for (let call = 0; call < 4; call++) compiled(x, y);
    const replayed = counted(() => compiled(x, y));
    expect(replayed.dispatches).toBeLessThan(plain.dispatches);
    expect([plain.allocated > 20, replayed.allocated]).toEqual([true, 2]);
  }),
);

test(
  "arguments and state in host memory are moved to the device",
  onMetal(() => {
    const kept = withBackend("cpu", () => ones([4]));
    const compiled = compile((x: Tensor) => x.add(kept));
    for (let call = 0; call < 6; call++) {
      const x = withBackend(call % 2 === 0 ? "cpu" : "metal", () => tensor([call, 0, 0, 0]));
      if (call === 4) withBackend("cpu", () => kept.add_(1));
      expect(compiled(x).toArray()).toEqual(call < 4 ? [call + 1, 1, 1, 1] : [call + 2, 2, 2, 2]);
    }
    expect(compiled.explain()).toContain("4 replays");
  }),
);

test(
  "arguments that share memory, and views of them, are replayed",
  onMetal(() => {
    const fn = (a: Tensor, b: Tensor) => ({ sum: a.add(b), view: b.transpose(0, 1), a });
    const compiled = compile(fn);
    for (let call = 0; call < 5; call++) {
      const base = randn([8, 4]);
      const [a, b] = [base.narrow(0, call % 4, 4), base.narrow(0, 4, 4).transpose(0, 1)];
      const [got, expected] = [compiled(a, b), fn(a, b)];
      expect(got.a).toBe(a);
      expect(got.view.storage).toBe(base.storage);
      expect(got.view.toArray()).toEqual(expected.view.toArray());
      expect(got.sum.toArray()).toEqual(expected.sum.toArray());
    }
    expect(compiled.variants).toBe(1);
  }),
);

test(
  "arguments of every dtype at drawn offsets are replayed, of which kernels load four or eight elements at once",
  onMetal(() => {
    const random = new Random(42);
    for (const dtype of ["float32", "float16", "bfloat16", "int64", "int32", "uint8"] as const) {
      // without fusion, because generated kernels load single elements
      const compiled = compile((x: Tensor) => x.add(x).abs(), { fuse: false });
      const base = tensor(drawnIntegers(random, 64), { dtype });
      for (let call = 0; call < 24; call++) {
        const x = base.narrow(0, random.integer(0, 48), 16);
        expect([dtype, compiled(x).toArray()]).toEqual([dtype, x.add(x).abs().toArray()]);
      }
      expect(compiled.explain()).toMatch(/[1-9] replays/);
    }
  }),
);

test.each(["private", "shared"] as const)("steps with %s memory are bit-identical to plain steps", (storage) =>
  withBackend("metal", () => {
    const { defaultStorage } = metalContext();
    metalContext().configure("storage", storage);
    try {
      const [compiled, plain] = [makeStep(), makeStep()];
      for (let at = 0; at < 8; at++) {
        const [x, y] = [randn([8, 16]), orchard.randint(0, 4, [8])];
        expect(compiled.compiled(x, y).item()).toBe(plain.step(x, y).item());
      }
      const weights = ({ model }: typeof plain) => model.parameters().map((weight) => weight.toArray());
      expect(weights(compiled)).toEqual(weights(plain));
      expect(compiled.compiled.explain()).toContain("5 replays");
    } finally {
      metalContext().configure("storage", defaultStorage);
    }
  }),
);

test(
  "results are kept if a replay completes before the journal notes it",
  onMetal(() => {
    const compiled = compile((x: Tensor) => [x.add(1), x.mul(2)] as const);
    const x = tensor([1, 2, 3]);
    metalContext().configure("batch_operations", 1);
    try {
      const results = Array.from({ length: 400 }, () => compiled(x));
      for (const [sum, product] of results)
        expect([sum.toArray(), product.toArray()]).toEqual([
          [2, 3, 4],
          [2, 4, 6],
        ]);
    } finally {
      metalContext().configure("batch_operations", 40);
    }
  }),
);

/** Returns the increase of the device's statistics during a call. */
function counted(run: () => unknown): { dispatches: number; allocated: number } {
  const before = metalContext().statistics();
  run();
  const after = metalContext().statistics();
  return {
    dispatches: after.dispatches - before.dispatches,
    allocated: after.allocations + after.poolHits - before.allocations - before.poolHits,
  };
}

describe("chains of elementwise operations are one kernel", () => {
  const chain = (x: Tensor, weight: Tensor) => {
    const scaled = x.mul(weight).add(0.5); // a compiler contracts the product and the sum if it sees both
    return [orchard.where(scaled.gt(0), scaled.exp(), x).to("float16").square().to("float32"), scaled] as const;
  };
  const draw = () => [randn([6, 20]).transpose(0, 1).contiguous(), randn([6])] as const;

  test.each([
    ["without", false],
    ["with", true],
  ] as const)("a chain is bit-identical to plain calls %s contraction", (_, contract) =>
    withBackend("metal", () => {
      metalContext().configure("contract", contract);
      try {
        const compiled = compile(chain);
        for (let call = 0; call < 5; call++) {
          const [x, weight] = draw();
          const listed = (results: readonly Tensor[]) => results.map((each) => each.toArray());
          expect(listed(compiled(x, weight))).toEqual(listed(chain(x, weight)));
        }
        const [x, weight] = draw();
        expect(counted(() => compiled(x, weight)).dispatches).toBe(1);
        expect(counted(() => chain(x, weight)).dispatches).toBe(8);
        const [, plain, fused] = /; (\d+) bytes of operands, (\d+) with fusion/.exec(compiled.explain())!;
        expect(Number(fused)).toBeLessThan(0.5 * Number(plain));
      } finally {
        metalContext().configure("contract", false);
      }
    }),
  );

  test(
    "a chain stops where an operation reads other elements of its results",
    onMetal(() => {
      const functions: Readonly<Record<string, (x: Tensor) => Tensor>> = {
        transposed: (x) => x.mul(2).add(x.neg().transpose(0, 1).contiguous()),
        part: (x) => x.neg().add(x.exp().narrow(0, 1, 1)),
        reversed: (x) => x.exp().add(x.exp().flip([0])),
      };
      for (const [name, fn] of Object.entries(functions)) {
        const compiled = compile(fn);
        for (let call = 0; call < 4; call++) {
          const x = randn([4, 4]);
          expect([name, compiled(x).toArray()]).toEqual([name, fn(x).toArray()]);
        }
      }
    }),
  );
});

test(
  "an argument that shares its memory with the state runs plainly",
  onMetal(() => {
    const total = orchard.zeros([4]);
    const fn = (x: Tensor) => total.add_(x).mul(2);
    const compiled = compile(fn, { state: total });
    for (let call = 0; call < 5; call++) compiled(ones([4]));
    expect(total.toArray()).toEqual([5, 5, 5, 5]);
    expect(compiled(total).toArray()).toEqual([20, 20, 20, 20]);
    expect(compiled.explain()).toContain("1 call plain: an argument shares its memory with the state");
  }),
);

describe("values that a device checks", () => {
  const makeLookup = () => {
    const table = randn([5, 3]);
    const kept = orchard.zeros([3]);
    const compiled = compile(
      (index: Tensor) => {
        const rows = orchard.embedding(index, table);
        kept.add_(rows.sum({ dim: 0 }));
        return rows;
      },
      { state: kept },
    );
    for (let call = 0; call < 4; call++) compiled(tensor([0, 4], { dtype: "int64" }));
    return { table, kept, compiled };
  };

  test(
    "an index out of range is an error when a result or the state is read",
    onMetal(() => {
      const { kept, compiled } = makeLookup();
      const rows = compiled(tensor([1, 5], { dtype: "int64" }));
      expect(() => rows.toArray()).toThrow("expected indices of 0 to 4");
      expect(() => kept.toArray()).toThrow("expected indices of 0 to 4");
      expect(compiled.explain()).toContain("3 replays");
    }),
  );

  test(
    "a failed check of an argument's contents is an error of the results",
    onMetal(() => {
      const { table, compiled } = makeLookup();
      const bad = orchard.embedding(tensor([9], { dtype: "int64" }), table);
      const double = compile((x: Tensor) => x.mul(2));
      for (let call = 0; call < 4; call++) double(randn([1, 3]));
      expect(() => double(bad).toArray()).toThrow("expected indices of 0 to 4");
      expect(compiled(tensor([0, 0], { dtype: "int64" })).toArray()).toHaveLength(2);
    }),
  );
});

test(
  "if a command buffer of a replay fails, its results and state are lost, and can be loaded again",
  onMetal(() => {
    const { model, compiled } = makeStep();
    const [x, y] = [randn([8, 16]), orchard.randint(0, 4, [8])];
    for (let call = 0; call < 4; call++) compiled(x, y).item();
    const weight = model.parameters()[0];
    metalContext().injectFault("command-buffer");
    const loss = compiled(x, y);
    expect(() => loss.item()).toThrow("a command buffer of a compiled call failed");
    expect(() => weight.toArray()).toThrow("load the state again");
    expect(x.toArray()).toHaveLength(8);
  }),
);

test(
  "calls that can't be replayed on metal run plainly, and explain() says why",
  onMetal(() => {
    const cases: Readonly<Record<string, (x: Tensor) => Tensor>> = {
      "runs on the cpu backend": (x) => x.to("float64").mul(2).to("float32"),
      "checked after the call": (x) => orchard.linalg.cholesky(x.matmul(x.transpose(0, 1)).add(orchard.eye(4))),
    };
    for (const [why, fn] of Object.entries(cases)) {
      const compiled = compile(fn);
      for (let call = 0; call < 4; call++) {
        const x = randn([4, 4]);
        expect(compiled(x).toArray()).toEqual(fn(x).toArray());
      }
      expect(compiled.explain()).toContain("3 calls plain");
      expect(compiled.explain()).toContain(why);
    }
  }),
);

test("a truncated list of dispatches returns an error status, and counts none", () => {
  const { native } = metalContext();
  const outcome = new BigUint64Array(3).fill(9n);
  const encode = (list: Uint8Array, length: number) =>
    statusNames[native.orchard_dispatches_encode(list, length, outcome)];
  expect([encode(new Uint8Array(8), 0), ...outcome]).toEqual(["ok", 0n, 0n, 0n]);
  for (const [length, block] of [
    [4, 0n], // the list ends within a length
    [16, 9n], // a block that is longer than the list
    [16, 2n ** 63n],
    [16, 8n], // a block that contains no dispatch
  ] as const) {
    const list = new Uint8Array(new BigUint64Array([block, 0n]).buffer);
    expect([encode(list, length), ...outcome]).toEqual(["invalidArgument", 0n, 0n, 0n]);
  }
});

test(
  "a function is recorded again after its context was closed",
  onMetal(() => {
    const compiled = compile((x: Tensor) => x.mul(2));
    for (let call = 0; call < 6; call++) {
      if (call === 3) metalContext().close();
      expect(compiled(tensor([call])).item()).toBe(2 * call);
    }
    expect(compiled.explain()).toContain("recorded: the memory of a tensor has changed");
    compiled.reset();
  }),
);
