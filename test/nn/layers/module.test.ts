/** A module's state: how it is named, saved, loaded, converted, counted and printed. */
import { describe, expect, test } from "bun:test";
import { Generator, gelu, nn, relu, type Tensor, tensor, tidy, zeros } from "../../../src/index.ts";

const generator = () => new Generator(1);

/** A module with every kind of state, and values that are not state. */
class Everything extends nn.Module<[x: Tensor], Tensor> {
  readonly scale = parameter([2]);
  readonly first = new nn.Linear(2, 2, { generator: generator() });
  readonly list = [new nn.Linear(2, 3, { bias: false }), [parameter([1])], "a word"];
  readonly map = new Map<string, unknown>([
    ["inner", new nn.LayerNorm(2)],
    ["number", 3],
  ]);
  readonly nothing = null;
  readonly mean = zeros([2]);
  readonly result = this.scale.mul(2);
  readonly #secret = zeros([5]);
  private readonly hidden = parameter([4]);

  override forward(x: Tensor): Tensor {
    return relu(this.first.forward(x)).add(this.hidden.sum()).add(this.#secret.sum()) as Tensor;
  }
}

function parameter(shape: readonly number[]): Tensor {
  return zeros(shape, { requiresGrad: true });
}

const names = [
  "scale",
  "first.weight",
  "first.bias",
  "list.0.weight",
  "list.1.0",
  "map.inner.weight",
  "map.inner.bias",
  "hidden",
];

/** An output layer whose weight is the embedding table. */
class Tied extends nn.Module<[tokens: Tensor], Tensor> {
  readonly embedding = new nn.Embedding(5, 3, { generator: generator() });
  readonly head = Object.assign(new nn.Linear(3, 5, { bias: false }), { weight: this.embedding.weight });

  override forward(tokens: Tensor): Tensor {
    return this.head.forward(this.embedding.forward(tokens));
  }
}

describe("the state of a module", () => {
  const module = new Everything();

  test("the state is the module's properties, including lists and maps, in order", () => {
    expect([...module.namedParameters().keys()]).toEqual(names);
    expect([...module.namedBuffers().keys()]).toEqual(["mean"]);
    expect(module.parameters()).toEqual([...module.namedParameters().values()]);
    expect(module.parameters()[0]).toBe(module.scale);
    expect(Object.keys(module.stateDict())).toEqual([...names.slice(0, -1), "mean", "hidden"]);
  });

  test("modules are listed by name", () => {
    expect([...module.namedModules().keys()]).toEqual(["", "first", "list.0", "map.inner"]);
    expect(module.modules()[0]).toBe(module);
  });

  test("a frozen parameter is a buffer: saved, and not trained", () => {
    const own = new Everything();
    own.first.weight.requiresGrad = false;
    expect([...own.namedParameters().keys()]).toEqual(names.filter((name) => name !== "first.weight"));
    expect([...own.namedBuffers().keys()]).toEqual(["first.weight", "mean"]);
    expect(own.stateDict()["first.weight"]?.toArray()).toEqual(own.first.weight.toArray());
  });

  test("a tied parameter is listed once, under its first name", () => {
    const tied = new Tied();
    expect([...tied.namedParameters().keys()]).toEqual(["embedding.weight"]);
    expect(Object.keys(tied.stateDict())).toEqual(["embedding.weight"]);
    tied
      .forward(tensor([[1, 2]], { dtype: "int32" }))
      .sum()
      .backward();
    expect(tied.embedding.weight.grad?.shape).toEqual([5, 3]);
  });

  test("a module in two properties is listed once, and a module that contains itself terminates", () => {
    class Loop extends nn.Module {
      readonly one = new nn.Linear(2, 2);
      readonly two = this.one;
      readonly self = this;
      override forward(): void {
        throw new Error("it computes nothing");
      }
    }
    const loop = new Loop();
    expect([...loop.namedModules().keys()]).toEqual(["", "one"]);
    expect([...loop.namedParameters().keys()]).toEqual(["one.weight", "one.bias"]);
    expect(loop.loadStateDict({ "two.weight": zeros([2, 2]), "one.bias": zeros([2]) })).toEqual({
      missing: [],
      unexpected: [],
    });
    expect(loop.one.weight.toArray()).toEqual([
      [0, 0],
      [0, 0],
    ]);
  });

  test("zeroGrad() clears gradients", () => {
    const own = new Everything();
    own
      .forward(zeros([1, 2]))
      .sum()
      .backward();
    expect(own.first.bias?.grad).not.toBeNull();
    own.zeroGrad();
    expect(own.parameters().every(({ grad }) => grad === null)).toBe(true);
  });

  test("train() and eval() reach every part", () => {
    const own = new nn.Sequential(new nn.Dropout(), new nn.Sequential(new nn.Dropout()));
    const modes = () => own.modules().map(({ training }) => training);
    expect(modes()).toEqual([true, true, true, true]);
    expect(own.eval()).toBe(own);
    expect(modes()).toEqual([false, false, false, false]);
    own.train();
    expect(modes()).toEqual([true, true, true, true]);
  });
});

describe("stateDict and loadStateDict", () => {
  test("stateDict and loadStateDict copy a model, and outlive a tidy", () => {
    const [from, to] = [new Everything(), new Everything()];
    from.loadStateDict({ ...from.stateDict(), mean: tensor([5, 6]), scale: tensor([7, 8]) });
    tidy(() => to.loadStateDict(from.stateDict()));
    const values = (module: nn.Module) => Object.entries(module.stateDict()).map(([name, x]) => [name, x.toArray()]);
    expect(values(to)).toEqual(values(from));
    expect(to.mean.toArray()).toEqual([5, 6]);
    expect(to.scale.requiresGrad).toBe(true);
  });

  test("a state is a view of the parameters without history", () => {
    const linear = new nn.Linear(2, 1, { bias: false });
    const { weight } = linear.stateDict();
    linear.loadStateDict({ weight: tensor([[3, 4]]) });
    expect([weight.toArray(), weight.requiresGrad]).toEqual([[[3, 4]], false]);
  });

  test("a tied parameter may be under any of its names", () => {
    const tied = new Tied();
    const values = zeros([5, 3]).add(2) as Tensor;
    expect(tied.loadStateDict({ "head.weight": values })).toEqual({ missing: [], unexpected: [] });
    expect(tied.embedding.weight.select(0, 0).toArray()).toEqual([2, 2, 2]);
    tied.loadStateDict({ "embedding.weight": values.add(1) as Tensor, "head.weight": values });
    expect(tied.embedding.weight.select(0, 0).toArray()).toEqual([3, 3, 3]);
  });

  test("all mismatches are listed, and nothing is loaded", () => {
    const module = new Everything();
    const before = module.scale.toArray();
    const { "first.weight": _, ...state } = module.stateDict();
    const wrong = {
      ...state,
      scale: tensor([1, 2]),
      hidden: tensor([1, 2]),
      mean: tensor([1, 2], { dtype: "float64" }),
      "first.wieght": zeros([2, 2]),
      extra: zeros([1]),
    };
    const load = () => module.loadStateDict(wrong);
    expect(load).toThrow(nn.StateDictError);
    expect(load).toThrow(
      expect.objectContaining({
        code: "stateDiffers",
        missing: ["first.weight"],
        unexpected: ["first.wieght", "extra"],
        different: ["mean", "hidden"],
        message: `[loadStateDict] the state does not match Everything; nothing was loaded:
  missing from the state:
    first.weight
  unexpected in the state ({ strict: false } ignores missing and unexpected names):
    first.wieght
    extra
  another shape or dtype (change the module's sizes, or convert it with to()):
    mean: expected float32[2], got float64[2]
    hidden: expected float32[4], got float32[2]`,
      }),
    );
    expect(module.scale.toArray()).toEqual(before);
    expect(() => module.loadStateDict(wrong, { strict: false })).toThrow(nn.StateDictError);
    expect(module.scale.toArray()).toEqual(before);
  });

  test("strict: false loads what matches, and reports the other names", () => {
    const module = new Everything();
    const report = module.loadStateDict({ scale: tensor([1, 2]), extra: zeros([1]) }, { strict: false });
    expect(report.unexpected).toEqual(["extra"]);
    expect(report.missing).toEqual([...names.slice(1, -1), "mean", "hidden"]);
    expect(module.scale.toArray()).toEqual([1, 2]);
  });

  test("loading a disposed state changes nothing", () => {
    const linear = new nn.Linear(1, 1);
    const gone = zeros([1]);
    gone.dispose();
    expect(() => linear.loadStateDict({ weight: tensor([[9]]), bias: gone })).toThrow("was used after dispose()");
    expect(linear.weight.item()).not.toBe(9);
  });
});

describe("to(dtype) converts a module", () => {
  test("to() converts floats, keeps tensors tied and frozen, and leaves integers unchanged", () => {
    const tied = new Tied();
    expect(tied.to("bfloat16")).toBe(tied);
    expect(tied.head.weight).toBe(tied.embedding.weight);
    expect([tied.embedding.weight.dtype, tied.embedding.weight.requiresGrad]).toEqual(["bfloat16", true]);
    const linear = Object.assign(new nn.Linear(2, 2), { steps: zeros([1], { dtype: "int64" }) });
    linear.bias!.requiresGrad = false;
    linear.to("float64");
    expect([linear.weight.dtype, linear.bias!.dtype, linear.steps.dtype]).toEqual(["float64", "float64", "int64"]);
    expect(linear.bias!.requiresGrad).toBe(false);
    expect(linear.weight.isLeaf).toBe(true);
  });

  test("converted tensors outlive a tidy", () => {
    const linear = new nn.Linear(2, 2);
    linear.bias!.requiresGrad = false;
    tidy(() => linear.to("float16"));
    expect(linear.forward(zeros([1, 2], { dtype: "float16" })).dtype).toBe("float16");
  });
});

describe("a module prints its tree", () => {
  class Small extends nn.Module<[x: Tensor], Tensor> {
    readonly layers = [new nn.Linear(100, 50), new nn.Dropout(0.1)];
    readonly norm = new nn.LayerNorm(50, { bias: false });
    override forward(x: Tensor): Tensor {
      return gelu(x);
    }
  }

  test("a module prints the tree of its modules", () => {
    expect(String(new Small())).toBe(`Small(
  (layers.0): Linear(100, 50)
  (layers.1): Dropout(p: 0.1)
  (norm): LayerNorm(50, eps: 0.00001, bias: false)
)`);
  });

  test.each<[string, () => nn.Module<never>]>([
    ["LayerNorm(2, 3, eps: 0.00001)", () => new nn.LayerNorm([2, 3])],
    ["LayerNorm(2, 3, eps: 0.5, bias: false)", () => new nn.LayerNorm([2, 3], { bias: false, eps: 0.5 })],
    ["RMSNorm(2, 3, eps: 0.000001)", () => new nn.RMSNorm([2, 3])],
    ["Unflatten(dim: 1, sizes: [2, 3])", () => new nn.Unflatten(1, [2, 3])],
    ["Conv2d(1, 2, [3, 5])", () => new nn.Conv2d(1, 2, [3, 5])],
    ["ZeroPad2d([1, 2, 3, 4])", () => new nn.ZeroPad2d([1, 2, 3, 4])],
    ["ConstantPad2d([1, 2, 3, 4], value: 5)", () => new nn.ConstantPad2d([1, 2, 3, 4], 5)],
    ["AdaptiveAvgPool2d([2, 3])", () => new nn.AdaptiveAvgPool2d([2, 3])],
    ["LPPool2d(2, [2, 3], ceilMode: false)", () => new nn.LPPool2d(2, [2, 3])],
  ])("details of several axes are printed: %s", (text, make) => {
    expect(String(make())).toBe(text);
  });

  test("details of modules with submodules are printed", () => {
    expect(String(new nn.MLP({ width: 2, hidden: 3 }))).toBe(`MLP(
  gelu
  (up): Linear(2, 3)
  (down): Linear(3, 2)
)`);
  });

  test("a summary shows tied and frozen parameters", () => {
    class Both extends nn.Module {
      readonly tied = new Tied();
      readonly small = new Small();
      override forward(): void {
        throw new Error("it computes nothing");
      }
    }
    const both = new Both();
    both.small.norm.weight!.requiresGrad = false;
    expect(both.summary()).toBe(
      `
layer           kind       state                        numbers    bytes
──────────────  ─────────  ───────────────────────────  ───────  ───────
tied.embedding  Embedding  weight [5, 3]                     15     60 B
tied.head       Linear     weight [5, 3] (tied)               0      0 B
small.layers.0  Linear     weight [50, 100], bias [50]    5,050  20.2 KB
small.norm      LayerNorm  weight [50] (frozen)              50    200 B
──────────────  ─────────  ───────────────────────────  ───────  ───────
5,065 parameters, 20.3 KB; 50 in buffers, 200 B
`.trim(),
    );
  });
});
