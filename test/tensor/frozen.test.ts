/**
 * Changing a tensor's shape, or an array that was passed to a call, does not change the tensor: native code needs that.
 */
import { beforeEach, describe, expect, test } from "bun:test";
import * as orchard from "../../src/index.ts";
import { arange, fromArray, ones, randn, setBackend, sum, type Tensor, zeros } from "../../src/index.ts";
import { freezeList, plainList } from "../../src/tensor/frozen.ts";

beforeEach(() => setBackend("cpu"));

const LARGE = 1 << 22;

describe("changes of the caller's arrays have no effect", () => {
  const cases: Readonly<Record<string, (sizes: number[]) => Tensor>> = {
    reshape: (sizes) => ones([16]).reshape(sizes),
    "reshape of a transposed tensor": (sizes) => ones([4, 4]).transpose(0, 1).reshape(sizes),
    expand: (sizes) => ones([1, 4]).expand(sizes),
    zeros: (sizes) => zeros(sizes),
    randn: (sizes) => randn(sizes),
    fromArray: (sizes) => fromArray(new Float32Array(16), sizes),
    tensor: (sizes) => orchard.tensor(new Float32Array(16), { shape: sizes }),
    unflatten: (sizes) => orchard.unflatten(ones([16]), 0, sizes),
  };
  for (const [name, make] of Object.entries(cases))
    test(`${name} copies the sizes that it is given`, () => {
      const sizes = [4, 4];
      const x = make(sizes);
      const before = [...x.dataSync()];
      sizes[0] = LARGE;
      expect(x.shape).toEqual([4, 4]);
      expect(x.size).toBe(16);
      expect([...x.dataSync()]).toEqual(before);
      expect(Number(sum(x).item())).toBeCloseTo(
        before.map(Number).reduce((total, value) => total + value, 0),
        4,
      );
    });

  // Each row: a call for a vector of 4, its argument, a later change of the argument, the gradient of a weighted sum.
  const gradients: readonly (readonly [string, (x: Tensor, list: number[]) => Tensor, number[], number[]])[] = [
    ["repeat", (x, list) => x.repeat(list), [2, 3], [99, 99]],
    ["tile", (x, list) => orchard.tile(x, list), [3], [99]],
    ["flip", (x, list) => orchard.flip(x.reshape([2, 2]), list), [0], [1]],
    ["pad", (x, list) => orchard.pad(x, list), [2, 1], [9, 9]],
    ["roll", (x, list) => orchard.roll(x.reshape([2, 2]), list, { dims: [0, 1] }), [1, 1], [0, 0]],
    ["permute", (x, list) => x.reshape([2, 2]).permute(list), [1, 0], [0, 1]],
    ["split", (x, list) => orchard.cat(orchard.split(x, list)), [1, 3], [99, 0]],
    ["sum", (x, list) => x.reshape([2, 2]).sum({ dim: list }), [0], [1]],
    ["squeeze", (x, list) => orchard.squeeze(x.reshape([1, 4, 1]), { dim: list }), [0], [1]],
    ["reshape", (x, list) => x.reshape(list), [2, 2], [LARGE, LARGE]],
  ];
  for (const [name, apply, list, later] of gradients)
    test(`the gradient of ${name} does not depend on later changes of its argument`, () => {
      const gradientOf = (change: boolean): number[] => {
        const x = arange(4, { dtype: "float32" });
        x.requiresGrad = true;
        const given = [...list];
        const y = apply(x, given);
        if (change) for (const [at, value] of later.entries()) given[at] = value;
        const weights = arange(y.size, { dtype: "float32" }).reshape(y.shape);
        sum(y.mul(weights) as Tensor).backward();
        return [...x.grad!.dataSync()].map(Number);
      };
      expect(gradientOf(true)).toEqual(gradientOf(false));
    });

  test("an array whose sizes change while they are read is read once", () => {
    let reads = 0;
    const sizes = new Proxy([4, 4], {
      get: (target, key, receiver) => (key === "0" && ++reads > 1 ? LARGE : Reflect.get(target, key, receiver)),
    });
    expect(ones([16]).reshape(sizes).shape).toEqual([4, 4]);
  });
});

describe("the layout of a tensor is frozen", () => {
  const hostile = (x: Tensor): Record<string, () => unknown> => {
    const open = x as unknown as Record<string, unknown> & { shape: number[]; strides: number[] };
    return {
      "shape[0] = …": () => {
        open.shape[0] = LARGE;
      },
      "strides[0] = …": () => {
        open.strides[0] = LARGE;
      },
      "shape.push(…)": () => open.shape.push(LARGE),
      "shape.length = 0": () => {
        open.shape.length = 0;
      },
      "shape = …": () => {
        open["shape"] = [LARGE, 4] as never;
      },
      "strides = …": () => {
        open["strides"] = [LARGE, 1] as never;
      },
      "offset = …": () => {
        open["offset"] = LARGE;
      },
      "dtype = …": () => {
        open["dtype"] = "float64";
      },
      "storage = …": () => {
        open["storage"] = ones([1]).storage;
      },
      "Object.assign": () => Object.assign(open, { shape: [LARGE, 4] }),
      "Reflect.set": () => {
        if (!Reflect.set(open, "offset", LARGE)) throw new TypeError("refused");
      },
      "sort of strides": () => open.strides.sort(),
    };
  };
  for (const name of Object.keys(hostile(ones([4, 4]))))
    test(`${name} is rejected and changes nothing`, () => {
      const x = ones([4, 4]);
      expect(hostile(x)[name]).toThrow(TypeError);
      expect([x.shape, x.strides, x.offset, x.dtype] as unknown).toEqual([[4, 4], [4, 1], 0, "float32"]);
      expect(x.sum().item()).toBe(16);
    });

  test("results and views are frozen too, and shapes remain arrays", () => {
    const x = ones([4, 4]);
    for (const made of [
      x.transpose(0, 1),
      x.add(x),
      x.sum({ dim: 0 }),
      x.reshape([2, 8]),
      x.expand([2, 4, 4]),
    ] as Tensor[]) {
      expect(Object.isFrozen(made.shape)).toBe(true);
      expect(Object.isFrozen(made.strides)).toBe(true);
    }
    expect(Array.isArray(x.shape)).toBe(true);
    expect(JSON.stringify({ shape: x.shape })).toBe('{"shape":[4,4]}');
    expect(x.shape.with(0, 7)).toEqual([7, 4]);
    expect(structuredClone(x.shape)).toEqual([4, 4]);
  });

  test("a gradient's shape is frozen, in a hook too", () => {
    const x = ones([2, 2], { requiresGrad: true });
    x.registerHook((gradient) => {
      expect(() => {
        (gradient.shape as unknown as number[])[0] = LARGE;
      }).toThrow(TypeError);
      return undefined;
    });
    x.sum().backward();
    expect(Object.isFrozen(x.grad!.shape)).toBe(true);
  });
});

describe("frozen lists of sizes are shared", () => {
  test("equal lists are one object, even if other lists were created in between", () => {
    const first = freezeList([3, 5]);
    expect(freezeList([3, 5])).toBe(first);
    for (let size = 0; size < 10_000; size++) expect(freezeList([size, size + 1])).toEqual([size, size + 1]);
    expect([...freezeList([3, 5])]).toEqual([3, 5]);
    expect(plainList(first)).toEqual([3, 5]);
  });

  test("a negative zero in a list becomes 0", () => {
    expect(Object.is(freezeList([-0, 987])[0], 0)).toBe(true);
  });

  test("sizes that are equal modulo 2^32 are different lists", () => {
    const [small, large] = [freezeList([1, 2]), freezeList([1 + 2 ** 32, 2])];
    expect([[...small], [...large]]).toEqual([
      [1, 2],
      [1 + 2 ** 32, 2],
    ]);
  });

  test("methods have the results and the callbacks of an array's", () => {
    const [list, plain] = [freezeList([2, 3, 3, 7]), [2, 3, 3, 7]];
    const uses: readonly ((x: readonly number[]) => unknown)[] = [
      (x) => [x.at(0), x.at(-1), x.at(4), x.at(-5)],
      (x) => [x.slice(), x.slice(1), x.slice(-2), x.slice(1, -1), x.slice(9)],
      (x) => [
        x.with(1, 9),
        x.with(-1, 9),
        x.toSpliced(1, 2),
        x.toSpliced(2),
        x.toSpliced(1, 0, 5, 6),
        x.toSpliced(-1, 1),
      ],
      (x) => [x.includes(3), x.includes(4), x.includes(2, 1), x.includes(7, -1)],
      (x) => [
        x.every((size) => size > 1),
        x.every((size) => size > 2),
        x.some((size) => size > 6),
        x.some(Number.isNaN),
      ],
      (x) => [x.map((size, at, all) => [size, at, all === x]), x.filter((size, at, all) => size > at && all === x)],
      (x) =>
        x.map(function (this: number, size) {
          return size * this;
        }, 3),
      (x) => [[...x], x.indexOf(3), x.reduce((sum, size) => sum + size), x.concat([1]), JSON.stringify(x)],
    ];
    for (const use of uses) expect(use(list)).toStrictEqual(use(plain));
    expect(list).toStrictEqual(plain);
    expect(Bun.inspect(list)).toBe(Bun.inspect(plain));
    expect(() => list.with(4, 1)).toThrow(RangeError);
    for (const use of [() => list.map(() => 1), () => list.slice()]) (use() as number[])[0] = 99; // a copy
    expect([...list]).toEqual(plain);
  });
});

test("of two lists that calls use in turn, neither is created again", () => {
  const lists = [[], ...[1, 2, 3, 7, 32].flatMap((size) => [[size], [1, size], [size, 1], [size, size, 2]])];
  for (const one of lists)
    for (const other of lists) {
      const kept = [freezeList([...one]), freezeList([...other])];
      expect([freezeList([...one]), freezeList([...other])].every((list, at) => list === kept[at])).toBe(true);
    }
});
