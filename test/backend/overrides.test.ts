/** Overrides and routes: their scope, names and checks, and that they leave nothing behind. */
import { afterEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  backward,
  codepaths,
  gelu,
  kernelOverride,
  layerNorm,
  matmul,
  metalKernel,
  mul,
  type OverrideCall,
  type OverrideHandle,
  override,
  overrides,
  resetCodepaths,
  route,
  routes,
  sigmoid,
  silu,
  sum,
  tensor,
  transpose,
  withBackend,
  withOverride,
  withRoute,
  zeros,
} from "../../src/index.ts";
import { errorOf } from "../support/errors.ts";

const x = tensor([-1, 0, 2]);
/** The result of `gelu` without an override. */
const plain = [-0.158655, 0, 1.9545];
const onCpu = (): number[] => withBackend("cpu", () => gelu(x).toArray() as number[]);
const expectPlain = (values: readonly number[] = onCpu()): void =>
  values.forEach((value, index) => void expect(value).toBeCloseTo(plain[index], 4));

afterEach(() => {
  expect([overrides(), routes()]).toEqual([[], []]); // each test restores its changes
});

describe("an override replaces an operation", () => {
  test("an override replaces an operation on a backend until it is restored", () => {
    const handle = override("gelu", "cpu", ({ inputs: [own] }) => mul(own, 10));
    expect(onCpu()).toEqual([-10, 0, 20]);
    withBackend("reference", () => expectPlain(gelu(x).toArray() as number[]));
    handle.restore();
    expectPlain();
  });

  test("an override works with using", () => {
    {
      using _ = override("gelu", "cpu", ({ inputs: [own] }) => mul(own, 10));
      expect(onCpu()).toEqual([-10, 0, 20]);
    }
    expectPlain();
  });

  test("the latest override runs first; restoring in another order, or twice, keeps the others", () => {
    const first = override("gelu", "cpu", ({ inputs: [own] }) => mul(own, 10));
    const second = override("gelu", "cpu", ({ inputs: [own] }) => mul(own, 100));
    expect(onCpu()).toEqual([-100, 0, 200]);
    first.restore();
    first.restore();
    expect(onCpu()).toEqual([-100, 0, 200]);
    second.restore();
    expectPlain();
  });

  test("a predicate limits an override to dtypes and shapes", () => {
    using _ = override("gelu", "cpu", ({ inputs: [own] }) => mul(own, 10), {
      when: ({ inputs: [own] }) => own.dtype === "float32" && own.rank === 2,
    });
    expectPlain();
    expect(withBackend("cpu", () => gelu(tensor([[1]])).item())).toBe(10);
  });

  test("an override may call the implementation that it replaces", () => {
    using _ = override("gelu", "cpu", ({ inputs: [own] }) => mul(gelu(own), 2));
    onCpu().forEach((value, index) => void expect(value).toBeCloseTo(2 * plain[index], 4));
  });

  test("an override may write results directly into memory", () => {
    using _ = override("gelu", "cpu", ({ outputs: [out] }) => {
      out.fill_(7);
    });
    expect(onCpu()).toEqual([7, 7, 7]);
  });

  test("an override does not change the operation's gradient", () => {
    using _ = override("silu", "cpu", ({ inputs: [own] }) => mul(own, 10));
    const own = tensor([0.5], { requiresGrad: true });
    withBackend("cpu", () => backward(sum(silu(own))));
    const share = 1 / (1 + Math.exp(-0.5));
    expect(own.grad!.item()).toBeCloseTo(share + 0.5 * share * (1 - share), 5);
  });

  test("codepaths() and overrides() name the override", () => {
    resetCodepaths();
    using _ = override("gelu", "cpu", ({ inputs: [own] }) => mul(own, 10), { name: "tenfold" });
    onCpu();
    const found = codepaths().find(({ operation }) => operation === "gelu");
    expect(found).toEqual({ operation: "gelu", backend: "cpu", reason: "preferred, tenfold", calls: 1 });
    expect(overrides()).toEqual([{ operation: "gelu", backend: "cpu", name: "tenfold" }]);
  });

  test.each([
    ["another shape", () => zeros([2]), "ShapeError", "expected shape [3] as result 0 of wrong, got [2]"],
    [
      "another dtype",
      () => zeros([3], { dtype: "int32" }),
      "DTypeError",
      "expected float32 as result 0 of wrong, got int32",
    ],
    ["too many results", () => [zeros([3]), zeros([3])], "ArgumentError", "expected 1 results from wrong, got 2"],
  ] as const)("%s is an error that names the override", (_what, body, name, message) => {
    using _ = override("gelu", "cpu", body, { name: "wrong" });
    const error = errorOf(onCpu);
    expect([error.constructor.name, error.message]).toEqual([name, expect.stringContaining(message)]);
  });

  test.each([
    [
      "an unknown operation",
      () => override("gellu", "cpu", () => {}),
      'there is no operation "gellu"; did you mean "gelu"?',
    ],
    [
      "an unknown backend",
      () => override("gelu", "cup" as "cpu", () => {}),
      'there is no backend "cup"; expected one of cpu, metal, reference',
    ],
    ["an unknown family", () => route("normalisation", "cpu"), 'did you mean "normalization"?'],
  ] as const)("%s is rejected", (_what, call, message) => {
    expect(errorOf(call).message).toContain(message);
  });
});

describe("withOverride limits an override to a body", () => {
  const tenfold = ({ inputs: [own] }: OverrideCall) => mul(own, 10);

  test("the override applies to the body of a call", () => {
    const inside = withOverride("gelu", "cpu", tenfold, onCpu);
    expect(inside).toEqual([-10, 0, 20]);
    expectPlain();
  });

  test("the override applies across awaits, and not to code that runs between them", async () => {
    const inside = withOverride("gelu", "cpu", tenfold, async () => {
      await Bun.sleep(2);
      return onCpu();
    });
    expectPlain();
    await Bun.sleep(1);
    expectPlain();
    expect(await inside).toEqual([-10, 0, 20]);
    expectPlain();
  });

  test("the override precedes an override of the process, and ends if the body throws", () => {
    using _ = override("gelu", "cpu", ({ inputs: [own] }) => mul(own, 100));
    expect(withOverride("gelu", "cpu", tenfold, onCpu)).toEqual([-10, 0, 20]);
    expect(() =>
      withOverride("gelu", "cpu", tenfold, () => {
        throw new Error("stop");
      }),
    ).toThrow("stop");
    expect(onCpu()).toEqual([-100, 0, 200]);
  });
});

describe("a kernel can be the body of an override", () => {
  const source = `
    #include <metal_stdlib>
    using namespace metal;
    kernel void tenfold(device const float *x, device float *y, constant uint &count,
                        uint i [[thread_position_in_grid]]) {
      if (i < count) y[i] = x[i] * 10.0f;
    }`;

  test("the kernel computes on metal, from strided operands too", () => {
    using kernel = metalKernel({ name: "tenfold", source });
    using _ = override(
      "gelu",
      "metal",
      kernelOverride(kernel, ({ inputs: [own], outputs: [out] }) => ({
        bindings: { x: own, y: out, count: own.size },
        options: { grid: own.size },
      })),
    );
    withBackend("metal", () => {
      expect(gelu(x).toArray()).toEqual([-10, 0, 20]);
      const strided = transpose(
        tensor([
          [1, 2, 3],
          [4, 5, 6],
        ]),
        0,
        1,
      );
      expect(gelu(strided).toArray()).toEqual([
        [10, 40],
        [20, 50],
        [30, 60],
      ]);
    });
  });
});

describe("a route changes the backend of a family", () => {
  const norm = () => layerNorm(tensor([[1, 2, 3]]));
  const backendOf = (operation: string, call: () => unknown): string | undefined => {
    resetCodepaths();
    withBackend("cpu", call);
    return codepaths().find((own) => own.operation === operation)?.backend;
  };

  test("a route prefers a backend for a family until it is restored", () => {
    resetCodepaths();
    {
      using _ = route("normalization", "reference");
      norm();
      matmul(tensor([[1]]), tensor([[2]]));
    }
    norm();
    const used = codepaths().filter(({ operation }) => operation === "normalizationForward" || operation === "matmul");
    const rows = used.map(({ operation, backend, calls }) => `${operation} ${backend} ${calls}`).sort();
    expect(rows).toEqual(["matmul cpu 1", "normalizationForward cpu 1", "normalizationForward reference 1"]);
  });

  test("withBackend has precedence over a route of the process, and a route of the body over withBackend", () => {
    using _ = route("normalization", "reference");
    expect(backendOf("normalizationForward", norm)).toBe("cpu");
    expect(backendOf("normalizationForward", () => withRoute("normalization", "reference", norm))).toBe("reference");
  });
});

test("a thousand random sequences of overrides and routes end in the original state", () => {
  const step = fc.record({
    kind: fc.constantFrom("override", "route", "restore", "restore again", "scoped"),
    operation: fc.constantFrom("gelu", "silu", "sigmoid"),
    backend: fc.constantFrom("cpu" as const, "reference" as const),
    which: fc.nat(20),
  });
  const own = tensor([0.25]);
  const compute = () => [gelu(own), silu(own), sigmoid(own)].map((result) => result.item());
  const original = [withBackend("cpu", compute), withBackend("reference", compute)];
  const property = fc.property(fc.array(step, { minLength: 1, maxLength: 12 }), (steps) => {
    const handles: (Pick<OverrideHandle, "restore"> & Disposable)[] = [];
    for (const { kind, operation, backend, which } of steps) {
      const scale = ({ inputs: [input] }: OverrideCall) => mul(input, which);
      if (kind === "override") handles.push(override(operation, backend, scale));
      else if (kind === "route") handles.push(route("elementwise", backend));
      else if (kind === "scoped") withOverride(operation, backend, scale, () => withBackend(backend, compute));
      else if (handles.length > 0) {
        const handle = handles[which % handles.length];
        handle.restore();
        if (kind === "restore again") handle[Symbol.dispose]();
      }
    }
    for (const handle of handles.reverse()) handle.restore();
    expect([overrides(), routes()]).toEqual([[], []]);
    expect([withBackend("cpu", compute), withBackend("reference", compute)]).toEqual(original);
  });
  fc.assert(property, { numRuns: 1000 });
});

describe("the return value of a body", () => {
  const run = (body: unknown) => {
    using _ = override("gelu", "cpu", body as never);
    return withBackend("cpu", () => errorOf(() => gelu(x)));
  };

  test("a body must return tensors or undefined: anything else is an error that names the override", () => {
    const anything = fc.oneof(
      fc.anything({ withTypedArray: true, withDate: true, withMap: true }).filter((own) => own != null),
      fc.constantFrom(() => 1, Symbol("a"), Promise.resolve(), { first: 1 }, { last: "2" }, new Float32Array(3)),
    );
    fc.assert(
      fc.property(anything, (own) => {
        expect(run(() => own)).toMatchObject({
          name: "ArgumentError",
          code: "wrongOverride",
          message: expect.stringMatching(/override of gelu/),
        });
      }),
      { numRuns: 200, seed: 6 },
    );
    expect(run(async () => mul(x, 2))).toMatchObject({ message: expect.stringMatching(/got a promise; .*async/) });
  });

  test("a body may return undefined only if every result was written, in any way", () => {
    expect(run(() => undefined)).toMatchObject({ code: "wrongOverride", message: expect.stringMatching(/result 0/) });
    expect(run(({ outputs: [y] }: OverrideCall) => void mul(y, 2))).toMatchObject({ code: "wrongOverride" });
    const ways: ((call: OverrideCall) => void)[] = [
      ({ outputs: [y] }) => void y.fill_(7),
      ({ outputs: [y] }) => void y.copy_(tensor([7, 7, 7])),
      ({ outputs: [y] }) => {
        for (let at = 0; at < 3; at++) y.narrow(0, at, 1).fill_(7);
      },
    ];
    for (const body of ways) {
      using _ = override("gelu", "cpu", body as never);
      expect(onCpu()).toEqual([7, 7, 7]);
    }
  });
});
