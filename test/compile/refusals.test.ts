/** Unsupported functions throw a typed error that names the line; calls that run plainly give the reason. */
import { describe, expect, test } from "bun:test";
import * as orchard from "../../src/index.ts";
import { CompileError, compile, nn, ones, optim, randn, type Tensor, tensor, withBackend } from "../../src/index.ts";

/** Calls a function until it throws, at most six times. */
function errorOf(fn: (...values: Tensor[]) => unknown, options: orchard.CompileOptions = {}): unknown {
  const compiled = compile(fn, options);
  try {
    for (let call = 0; call < 6; call++) compiled(randn([4, 4]));
  } catch (error) {
    return error;
  }
  return undefined;
}

const outside = ones([4, 4]);
const other = new optim.SGD([tensor([1, 2], { requiresGrad: true })], { lr: 0.1 });
const lbfgs = new optim.LBFGS([tensor([1, 2], { requiresGrad: true })]);
const parameter = ones([4, 4], { requiresGrad: true });
let count = 0;
const generator = new orchard.Generator(1);

const refused: Readonly<Record<string, readonly [code: string, fn: (x: Tensor) => unknown]>> = {
  item: ["read", (x) => x.sum().item()],
  toArray: ["read", (x) => x.exp().toArray()],
  "a tensor of the surrounding code": ["read", () => outside.toArray()],
  nonzero: ["read", (x) => orchard.nonzero(x)],
  "a mask": ["read", (x) => x.at(x.gt(0))],
  "an argument in place": ["writes", (x) => x.add_(1)],
  "a view of an argument in place": ["writes", (x) => x.transpose(0, 1).mul_(2)],
  "a tensor that is not state": ["writes", (x) => outside.add_(x)],
  "a number of a variable": ["changes", (x) => x.mul(++count)],
  "a tensor of a variable": ["changes", (x) => x.add(tensor([1, 2, 3, ++count]))],
  "another operation": ["changes", (x) => (++count % 2 ? x.exp() : x.sin())],
  "another number of operations": ["changes", (x) => (++count % 2 ? x.exp() : x.exp().exp())],
  "a result that JavaScript computes": ["changes", () => tensor([++count])],
  "an asynchronous function": ["async", (x) => Promise.resolve(x)],
  randperm: ["random", () => orchard.randperm(5)],
  seeding: ["seeded", (x) => orchard.rand([4], { generator: generator.manualSeed(1) }).add(x)],
  "an optimizer that is not state": ["notState", () => void other.step()],
  "a gradient of a tensor that is not state": ["notState", (x) => parameter.mul(x).sum().backward()],
  "a step of L-BFGS": ["read", (x) => void lbfgs.step(() => x.sum())],
};

describe("what can't be compiled throws a typed error", () => {
  test.each(Object.entries(refused))("%s throws a typed error", (_, [code, fn]) => {
    const error = withBackend("cpu", () => errorOf(fn));
    expect(error).toBeInstanceOf(CompileError);
    expect((error as CompileError).code).toBe(code);
    if (code !== "async" && code !== "changes")
      expect((error as CompileError).message).toMatch(/\(at \S+refusals\.test\.ts:\d+\)/);
  });

  test("a gradient that the function removes again is a result like others", () => {
    const fn = (x: Tensor) => {
      parameter.grad = null;
      parameter.mul(x).sum().backward();
      const gradient = parameter.grad as Tensor | null;
      parameter.grad = null;
      return gradient!;
    };
    const compiled = compile(fn);
    withBackend("cpu", () => {
      for (let call = 0; call < 5; call++)
        expect(
          compiled(ones([4, 4]).mul(call))
            .sum()
            .item(),
        ).toBe(16 * call);
    });
    expect(compiled.explain()).toContain("3 replays");
  });

  test.each(["cpu", "metal"] as const)("%s: results in a Map or in an object of a class run plainly", (backend) => {
    class Pair {
      constructor(readonly first: Tensor) {}
    }
    const results = { Map: (x: Tensor) => new Map([["x", x]]), Pair: (x: Tensor) => [new Pair(x)] };
    for (const [name, make] of Object.entries(results)) {
      const compiled = compile((x: Tensor) => make(x.mul(2)));
      withBackend(backend, () => {
        for (let call = 0; call < 5; call++) {
          const result = compiled(ones([2]).mul(call)) as [Pair] | Map<string, Tensor>;
          const found = result instanceof Map ? result.get("x")! : result[0].first;
          expect(found.toArray()).toEqual([2 * call, 2 * call]);
        }
      });
      expect(compiled.explain()).toContain(`4 calls plain: a result is an object of ${name}`);
    }
  });

  test("the next call works after a rejected one", () => {
    let isReading = true;
    const sum = compile((x: Tensor) => (isReading ? x.sum().add(Number(x.sum().item())) : x.sum()));
    withBackend("cpu", () => {
      expect(() => sum(ones([3]))).toThrow("item()");
      isReading = false;
      for (let call = 0; call < 5; call++) expect(sum(ones([3])).item()).toBe(3);
      expect(sum.explain()).toContain("3 replays");
    });
  });

  test("state must consist of modules and optimizers, and L-BFGS is not supported", () => {
    expect(() => compile(() => 1, { state: {} as never })).toThrow("expected state to have modules");
    expect(() => compile(() => 1, { state: [lbfgs as never] })).toThrow("compile the closure");
  });

  test("an index out of range in a replay is the plain call's error, and changes nothing", () => {
    withBackend("cpu", () => {
      const table = new nn.Embedding(4, 2);
      const optimizer = new optim.SGD(table.parameters(), { lr: 0.1 });
      const step = (indices: Tensor) => {
        const loss = orchard.dropout(table.forward(indices), 0.5).sum();
        loss.backward();
        optimizer.step();
        optimizer.zeroGrad();
        return loss;
      };
      const compiled = compile(step, { state: [table, optimizer] });
      for (let call = 0; call < 4; call++) compiled(tensor([0, 3], { dtype: "int64" }));
      const before = table.weight.toArray();
      const wrong = () => tensor([0, 4], { dtype: "int64" });
      let message = "";
      try {
        step(wrong());
      } catch (error) {
        message = String(error);
      }
      expect(message).toContain("expected indices");
      expect(() => compiled(wrong())).toThrow(message.replace("ShapeError: ", ""));
      expect(table.weight.toArray()).toEqual(before);
      expect(optimizer.slots[0].steps).toBe(4);
    });
  });
});

test.each([
  ["in a call", (indices: Tensor) => orchard.embedding(indices, ones([3, 2])), "expected indices of at least 0"],
  ["between calls", (indices: Tensor) => orchard.crossEntropy(ones([2, 3]), indices), "the outcome of a check"],
] as const)("a check of values %s that fails after state was changed throws a typed error", (_, of, message) => {
  withBackend("cpu", () => {
    const counter = tensor([0]);
    const compiled = compile(
      (indices: Tensor) => {
        counter.add_(1);
        return of(indices);
      },
      { state: counter },
    );
    const rows = (last: number) => tensor([0, last], { dtype: "int64" });
    for (let call = 0; call < 4; call++) compiled(rows(2));
    expect(() => compiled(rows(3))).toThrow(message);
    expect(counter.toArray()).toEqual([5]); // a plain call would have changed the counter too
  });
});

describe("calls that run without a replay", () => {
  const square = (x: Tensor) => x.mul(x).sum();

  test("calls on reference run plainly", () => {
    const compiled = compile(square);
    for (let call = 0; call < 4; call++)
      expect(withBackend("reference", () => compiled(tensor([1, 2, 3]))).item()).toBe(14);
    expect(compiled.explain()).toBe("4 calls plain: the backend is reference");
  });

  test("calls inside grad run plainly", () => {
    withBackend("cpu", () => {
      const compiled = compile(square);
      const x = tensor([1, 2], { requiresGrad: true });
      for (let call = 0; call < 4; call++) expect(orchard.grad(compiled(x), [x])[0].toArray()).toEqual([2, 4]);
      expect(compiled.explain()).toContain("4 calls plain: an argument requires a gradient");
    });
  });

  test("calls inside checkpoint, and checkpoint inside a call, give plain results", () => {
    withBackend("cpu", () => {
      const compiled = compile((x: Tensor) => x.exp());
      const x = tensor([0, 0], { requiresGrad: true });
      for (let call = 0; call < 5; call++) {
        x.grad = null;
        nn.checkpoint(compiled, x).sum().backward();
        expect(x.grad!.toArray()).toEqual([1, 1]);
      }
      const layer = new nn.Linear(3, 3);
      const around = (input: Tensor) => {
        const loss = nn.checkpoint((y) => orchard.dropout(layer.forward(y), 0.5), input).sum();
        loss.backward();
        return loss;
      };
      const outer = compile(around, { state: layer });
      const run = (fn: (input: Tensor) => Tensor) => {
        orchard.manualSeed(5);
        layer.zeroGrad();
        return Array.from({ length: 6 }, () => [fn(ones([2, 3])).item(), layer.weight.grad!.toArray()]);
      };
      const expected = run(around);
      expect(run(outer)).toEqual(expected);
      expect(outer.explain()).toMatch(/[34] replays/);
    });
  });

  test("a compiled function inside another one becomes a part of it", () => {
    withBackend("cpu", () => {
      const inner = compile(square);
      const outer = compile((x: Tensor) => inner(x.add(1)));
      for (let call = 0; call < 5; call++) expect(outer(tensor([call, 1])).item()).toBe((call + 1) ** 2 + 4);
      expect([inner.variants, outer.variants]).toEqual([0, 1]);
      expect(outer.explain()).toContain("3 replays");
    });
  });

  test("calls inside vmap run plainly, and vmap and jvp may be inside", () => {
    withBackend("cpu", () => {
      const compiled = compile(square);
      const rows = (fn: (x: Tensor) => Tensor) =>
        orchard.transforms.vmap(fn)(
          tensor([
            [1, 2],
            [3, 4],
          ]),
        ) as Tensor;
      for (let call = 0; call < 4; call++) expect(rows(compiled).toArray()).toEqual([5, 25]);
      expect(compiled.explain()).toBe("4 calls plain: vmap is active");
      const inner = (x: Tensor) => [rows((row) => row.mul(x).sum()), orchard.transforms.jvp(square, [x], [ones([2])])];
      const outer = compile(inner);
      for (let call = 0; call < 5; call++) {
        const x = randn([2]);
        expect(outer(x)).toEqual(inner(x));
      }
      expect(outer.explain()).toContain("3 replays");
    });
  });

  test("calls with an argument whose contents can't be compared run plainly", () => {
    withBackend("cpu", () => {
      class Holder {
        value = ones([2]);
      }
      const holder = new Holder();
      const compiled = compile((x: Tensor, { of }: { of: Holder }) => x.add(of.value));
      for (let call = 0; call < 4; call++) expect(compiled(ones([2]), { of: holder }).toArray()).toEqual([2, 2]);
      holder.value = tensor([4, 5]);
      expect(compiled(ones([2]), { of: holder }).toArray()).toEqual([5, 6]);
      expect(compiled.explain()).toBe("5 calls plain: an argument is an object of Holder");
      const numbers = new Map([["factor", 2]]);
      const scaled = compile((x: Tensor, by: ReadonlyMap<string, number>) => x.mul(by.get("factor")!));
      for (let call = 0; call < 4; call++) scaled(ones([2]), numbers);
      numbers.set("factor", 7);
      expect(scaled(ones([2]), numbers).toArray()).toEqual([7, 7]);
    });
  });

  test("modules of the state and generators are arguments of a program", () => {
    withBackend("cpu", () => {
      const layer = new nn.Sequential(new nn.Linear(2, 2), new nn.Dropout(0.5));
      const own = new orchard.Generator(3);
      const noisy = (x: Tensor, net: typeof layer, of: orchard.Generator) =>
        (net.forward(x) as Tensor).add(orchard.rand([2], { generator: of })).detach();
      const compiled = compile(noisy, { state: layer });
      for (let call = 0; call < 6; call++) {
        layer.train(call < 4);
        const results = [noisy, compiled].map((fn) => {
          orchard.manualSeed(call);
          own.manualSeed(call + 50); // equal seeds of two generators are not told apart
          return fn(ones([1, 2]), layer, own).toArray();
        });
        expect(results[1]).toEqual(results[0]);
      }
      expect(compiled.explain()).toContain("2 replays");
    });
  });

  test("calls with hooks run plainly", () => {
    withBackend("cpu", () => {
      const layer = new nn.Linear(2, 2);
      const compiled = compile((x: Tensor) => layer.forward(x), { state: layer });
      for (let call = 0; call < 4; call++) compiled(ones([1, 2]));
      const remove = layer.registerForwardHook(() => ones([1, 2]));
      expect(compiled(ones([1, 2])).toArray()).toEqual([[1, 1]]);
      expect(compiled.explain()).toContain("1 call plain: a Linear has hooks");
      remove();
    });
  });
});

describe("results of compiled functions", () => {
  test("views of arguments, state, shared memory and trees match plain calls", () => {
    withBackend("cpu", () => {
      const kept = ones([2]);
      const fn = (x: Tensor, names: { a: Tensor; b: readonly Tensor[] }, factor: number) => {
        const y = x.mul(factor);
        return { x, row: x.select(0, 1), y, part: y.narrow(0, 1, 1), sum: names.a.add(names.b[0]), kept, factor };
      };
      const compiled = compile(fn, { state: kept });
      for (let call = 0; call < 6; call++) {
        const base = randn([5, 3]);
        const x = base.narrow(0, call % 3, 2);
        const names = { a: randn([2]), b: [randn([2])] };
        const [got, expected] = [compiled(x, names, 3), fn(x, names, 3)];
        expect(got.x).toBe(x);
        expect(got.kept).toBe(kept);
        expect(got.row.storage).toBe(base.storage);
        expect(got.part.storage).toBe(got.y.storage);
        expect(got).toEqual(expected);
      }
      expect(compiled.variants).toBe(1);
      compiled(ones([2, 3]), { a: ones([2]), b: [ones([2])] }, 4);
      expect(compiled.variants).toBe(2);
    });
  });

  test("state that moved to another device and back is used in its place", () => {
    const weight = ones([3]);
    const compiled = compile((x: Tensor) => x.mul(weight));
    for (let call = 0; call < 4; call++) withBackend("cpu", () => compiled(ones([3])));
    withBackend("metal", () => weight.add_(1));
    expect(withBackend("cpu", () => compiled(ones([3]))).toArray()).toEqual([2, 2, 2]);
  });

  test.each(["cpu", "metal"] as const)("%s: a function disposes of its argument in each call", (backend) => {
    withBackend(backend, () => {
      const compiled = compile((x: Tensor) => {
        const sum = x.add(1);
        x.dispose();
        return sum;
      });
      for (let call = 0; call < 5; call++) {
        const x = ones([2]);
        expect(compiled(x).toArray()).toEqual([2, 2]);
        expect(x.isDisposed).toBe(true);
      }
      expect(compiled.explain()).toContain("3 replays");
      const given = ones([2]);
      given.dispose();
      expect(() => compiled(given)).toThrow(orchard.DisposedError);
    });
  });

  test("reset() frees the programs", () => {
    withBackend("cpu", () => {
      const compiled = compile((x: Tensor) => x.exp().sin().sum(), { fuse: false });
      const before = orchard.memory().host.liveBytes;
      for (let call = 0; call < 4; call++) orchard.tidy(() => void compiled(ones([2 ** 20])));
      expect(orchard.memory().host.liveBytes).toBeGreaterThan(before + 2 ** 22);
      compiled.reset();
      expect(compiled.variants).toBe(0);
      expect(orchard.memory().host.liveBytes).toBeLessThan(before + 2 ** 22);
    });
  });
});
