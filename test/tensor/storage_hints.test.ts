/**
 * The option `{ storage }`: every function that creates tensors honors it, given in the call or set as the default, and
 * `storageMode` shows it.
 */
import { afterEach, describe, expect, spyOn, test } from "bun:test";
import { forgetFailures } from "../../src/backend/failure.ts";
import { orderFrom } from "../../src/backend/policy.ts";
import { environmentFlag } from "../../src/core/environment.ts";
import {
  ArgumentError,
  arange,
  backward,
  empty,
  exp,
  eye,
  flashAttention,
  manualSeed,
  metalContext,
  OutOfMemoryError,
  ones,
  randn,
  sum,
  type Tensor,
  tensor,
  transpose,
  withBackend,
  withStrict,
  zeros,
} from "../../src/index.ts";
import { tested } from "../ops/run.ts";

type StorageMode = "shared" | "private";
const modes = ["shared", "private"] as const;

/** Ways to create a tensor with a hint. */
const makers: Readonly<Record<string, (storage?: StorageMode) => Tensor>> = {
  zeros: (storage) => zeros([4, 8], { storage }),
  randn: (storage) => randn([4, 8], { storage }),
  eye: (storage) => eye(8, 8, { storage }),
  arange: (storage) => arange(0, 8, { storage }),
  "tensor of numbers": (storage) => tensor([1, 2, 3], { storage }),
  "tensor of a typed array": (storage) => tensor(new Float32Array(20_000), { storage }),
};

describe.if(!environmentFlag("ORCHARD_SKIP_METAL"))("hints for storage are followed on metal", () => {
  const onMetal = <Result>(body: () => Result): Result => withStrict(true, () => withBackend("metal", body));
  afterEach(() => metalContext().configure("storage", "shared"));

  test.each(Object.keys(makers))("%s is in the hinted mode, with the right elements", (name) => {
    onMetal(() => {
      const [near, far] = modes.map((storage) => {
        manualSeed(4);
        const x = makers[name](storage);
        expect(x.storageMode).toBe(storage);
        return [...exp(x).dataSync(), ...x.dataSync()];
      });
      expect(far).toEqual(near);
    });
  });

  test.each(Object.keys(makers))("%s is in the default mode, which a hint overrides", (name) => {
    onMetal(() => {
      expect(makers[name]().storageMode).toBe("shared");
      metalContext().configure("storage", "private");
      expect(makers[name]().storageMode).toBe("private");
      expect(makers[name]("shared").storageMode).toBe("shared");
    });
  });

  test.each([2, 20_000])("operands of the host move to the default mode, with their elements: %d of them", (count) => {
    const values = Float32Array.from({ length: count }, (_, at) => at % 7);
    const x = withBackend("reference", () => tensor(values));
    expect(x.storageMode).toBe("host");
    metalContext().configure("storage", "private");
    const doubled = onMetal(() => x.add(x));
    expect([x.storageMode, doubled.storageMode]).toEqual(["private", "private"]);
    expect(doubled.dataSync()).toEqual(values.map((value) => 2 * value));
    expect(x.dataSync()).toEqual(values);
  });

  test("reading moves private memory, and views show the same memory", () => {
    onMetal(() => {
      const x = tensor([[1, 2]], { storage: "private" });
      const view = transpose(x, 0, 1);
      expect(view.storageMode).toBe("private");
      expect(x.toArray()).toEqual([[1, 2]]);
      expect([x.storageMode, view.storageMode]).toEqual(["shared", "shared"]);
    });
  });

  test("a step of attention in private memory: results and gradients are there too, and right", () => {
    const step = (storage: StorageMode) =>
      onMetal(() => {
        metalContext().configure("storage", storage);
        const x = tensor(
          Float32Array.from({ length: 2 * 12 * 8 }, (_, at) => Math.sin(at)),
          { shape: [1, 2, 12, 8], requiresGrad: true },
        );
        const out = flashAttention(x, x, x, { causal: true });
        backward(sum(out.mul(out)));
        return { modes: [x, out, x.grad!].map((each) => each.storageMode), values: [...x.grad!.dataSync()] };
      });
    const [near, far] = [step("shared"), step("private")];
    expect([near.modes, far.modes]).toEqual([
      ["shared", "shared", "shared"],
      ["private", "private", "private"],
    ]);
    expect(far.values).toEqual(near.values);
  });
});

test.each(["cpu", "reference"] as const)("on %s a hint changes nothing", (backend) => {
  withBackend(backend, () => {
    for (const storage of [undefined, ...modes]) expect(ones([2], { storage }).storageMode).toBe("host");
  });
});

test("an unknown mode is rejected, on every backend", () => {
  for (const make of Object.values(makers)) {
    expect(() => make("managed" as StorageMode)).toThrow(ArgumentError);
    expect(() => make("managed" as StorageMode)).toThrow(/expected storage to be "shared" or "private", got "managed"/);
  }
});

describe("more bytes than JavaScript's arrays have", () => {
  const make = (storage?: StorageMode) => empty([2 ** 30 + 1], { dtype: "float32", storage });

  test.each(tested)("allocations fail on %s, which is reported in one line for each backend", (backend) => {
    const warn = spyOn(console, "warn").mockImplementation(() => undefined);
    if (backend === "metal") metalContext().configure("poison", false); // poisoning would touch every page
    try {
      forgetFailures();
      expect(() => withBackend(backend, make)).toThrow(OutOfMemoryError);
      expect(warn.mock.calls.length).toBe(orderFrom[backend].length);
    } finally {
      if (backend === "metal") metalContext().configure("poison", true);
      warn.mockRestore();
    }
  });
});
