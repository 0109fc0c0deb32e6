/**
 * vmap of the operations in functorch's hand-written list (TestVmapOperators of test/functorch/test_vmap.py): each with
 * the examples along other axes, results along other axes, operands that the examples share, and two and three levels.
 */
import { describe, expect, test } from "bun:test";
import * as orchard from "../../src/index.ts";
import { add, linalg, mul, nn, rand, randint, randn, type Tensor, tensor, transforms } from "../../src/index.ts";
import { seed } from "../support/some.ts";
import { difference, partsOf } from "./samples.ts";

const { vmap } = transforms;
orchard.manualSeed(seed);

/** A function of tensors, of one example. */
type Body = (...values: Tensor[]) => Tensor | readonly Tensor[];
type Dims = readonly (number | null)[];

/** One level of vmap. */
interface Level {
  readonly dims: Dims;
  readonly out?: number;
}

const listed = (result: Tensor | readonly Tensor[]): readonly Tensor[] => [result].flat() as Tensor[];

/** vmap by a loop over the examples. */
function looped(body: Body, { dims, out = 0 }: Level): Body {
  return (...values) => {
    const at = dims.findIndex((dim) => dim !== null);
    const count = values[at].shape.at(dims[at]!)!;
    const examples = Array.from({ length: count }, (_, index) =>
      listed(body(...values.map((x, each) => (dims[each] === null ? x : x.select(dims[each], index))))),
    );
    return examples[0].map((_, result) =>
      orchard.stack(
        examples.map((all) => all[result]),
        out,
      ),
    );
  };
}

function check(body: Body, values: readonly Tensor[], ...levels: readonly Level[]): void {
  const all = levels.length === 0 ? [{ dims: values.map(() => 0) }] : levels;
  const mapped = all.reduceRight<Body>(
    (inner, { dims, out = 0 }) => vmap(inner, { inDims: [...dims], outDims: out }) as Body,
    body,
  );
  const wanted = listed(all.reduceRight<Body>(looped, body)(...values));
  const found = listed(mapped(...values));
  expect(found.map((x) => x.describe())).toEqual(wanted.map((x) => x.describe()));
  for (const [at, x] of found.entries()) expect(difference(partsOf(x), partsOf(wanted[at]))).toBeLessThan(1e-5);
}

/** A tensor of indices. */
const whole = (x: Tensor | undefined) => x as Tensor<"int64">;

const dims = (...values: (number | null)[]): Level => ({ dims: values });

/** The shapes of functorch's unary cases. */
function unary(body: Body, draw: (shape: number[]) => Tensor = randn): void {
  check(body, [draw([4, 3])]);
  check(body, [draw([2, 5, 4, 3])], dims(2));
  check(body, [draw([2, 5, 4, 3])], { dims: [2], out: 2 });
  check(body, [draw([4, 6])], dims(0), dims(0));
  check(body, [draw([6, 2, 5, 4, 3])], dims(2), dims(0));
  check(body, [draw([2, 5, 4, 6, 3])], { dims: [2], out: 2 }, dims(2));
}

/** The shapes of functorch's binary cases. */
function binary(body: Body, draw: (shape: number[]) => Tensor = randn): void {
  check(body, [draw([4, 3]), draw([4, 3])]);
  check(body, [draw([4]), draw([4, 2, 3])]);
  check(body, [draw([4]), draw([2, 4, 3])], { dims: [0, 1], out: 1 });
  check(body, [draw([4]), draw([2, 3])], dims(0, null));
  check(body, [draw([2, 3]), draw([4, 3])], dims(null, 0));
  check(body, [draw([4, 5, 2, 3]), draw([4, 5, 3])], dims(0, 0), dims(0, 0));
  check(body, [draw([4, 2, 3]), draw([5, 3])], dims(0, null), dims(null, 0));
}

const above = (shape: number[]): Tensor => add(rand(shape), 0.1) as Tensor;
const twos = (shape: number[]): Tensor => randint(0, 2, shape);

const pointwise: Readonly<Record<string, (shape: number[]) => Tensor>> = {
  abs: randn,
  acos: rand,
  asin: rand,
  atan: rand,
  ceil: randn,
  cos: rand,
  cosh: rand,
  digamma: above,
  exp: randn,
  expm1: randn,
  floor: randn,
  frac: randn,
  lgamma: above,
  log: above,
  log10: above,
  log1p: above,
  log2: above,
  neg: randn,
  reciprocal: above,
  relu: randn,
  round: randn,
  rsqrt: above,
  sigmoid: randn,
  sign: randn,
  sin: rand,
  sinh: rand,
  sqrt: rand,
  tan: rand,
  tanh: rand,
  trunc: randn,
};

type Method = (...values: unknown[]) => Tensor;
const methodOf = (x: Tensor, name: string): Method =>
  ((x as unknown as Record<string, Method>)[name] as Method).bind(x);

describe("vmap of elementwise functions agrees with single examples", () => {
  test.each(Object.entries(pointwise))("%s and its method in place agree with single examples", (name, draw) => {
    unary((x) => methodOf(x, name)(), draw);
    unary((x) => methodOf(x.clone(), `${name}_`)(), draw);
  });

  test.each(["add", "sub", "mul", "div", "pow"])(
    "%s of tensors, numbers and other dtypes agrees with single examples",
    (name) => {
      const body: Body = (x, y) => methodOf(x, name)(y);
      binary(body, above);
      unary((x) => methodOf(x, name)(1.5), above);
      unary((x) => (orchard as unknown as Record<string, Method>)[name](1.5, x), above);
      const wide = (shape: number[]) => above(shape).to("float64");
      check(body, [above([4]), wide([4])]);
      check(body, [wide([4]), above([4])]);
      check(body, [above([4, 2]), wide([4])]);
      check(body, [wide([4]), above([4, 2])]);
    },
  );

  test.each(["eq", "gt", "ge", "le", "lt", "ne"])("%s agrees with single examples", (name) => {
    binary((x, y) => methodOf(x, name)(y), twos);
    unary((x) => methodOf(x, name)(0), randn);
  });

  test("clamp to numbers and tensors, and in place, agrees with single examples", () => {
    for (const options of [{ min: -0.5 }, { max: 0.5 }, { min: -0.5, max: 0.5 }]) {
      unary((x) => x.clamp(options));
      unary((x) => x.clone().clamp_(options));
    }
    binary((x, y) => x.clamp({ min: y }));
    check((x, y) => x.clone().clamp_({ max: y }), [randn([4, 2, 3]), randn([2, 4, 3])], { dims: [0, 1], out: 1 });
  });

  test("copy_, fill_, isnan and isinf agree with single examples", () => {
    check((x, y) => x.clone().copy_(y), [randn([4, 3]), randn([4, 3])]);
    check((x, y) => x.clone().copy_(y), [randn([3, 2]), randn([3])], dims(1, null));
    check((x, y) => x.clone().fill_(y), [randn([4, 3]), randn([4])]);
    check((x, y) => x.clone().fill_(y), [randn([3, 4]), tensor(2)], dims(-1, null));
    for (const body of [(x: Tensor) => x.fill_(0.1), (x: Tensor) => x.zero_()]) unary((x) => body(x.clone()));
    const [x, y] = [randn([3]), randn([2, 3])];
    expect(() => vmap((own: Tensor, other: Tensor) => own.copy_(other), { inDims: [null, 0] })(x, y)).toThrow(
      "outside",
    );
    unary((own) => orchard.isnan(orchard.log(own)));
    unary((own) => orchard.isinf(orchard.div(1, orchard.relu(own))));
  });
});

describe("vmap of products agrees with single examples", () => {
  test.each([
    ["dot", [5], [5]],
    ["mm", [2, 5], [5, 2]],
    ["mv", [2, 5], [5]],
    ["bmm", [2, 3, 5], [2, 5, 3]],
  ] as const)("%s agrees with single examples", (name, a, b) => {
    const own = name === "dot" ? orchard.dot : orchard.matmul;
    const body: Body = (x, y) => own(x, y);
    const [wrong, matrix] = [randn([4, 2, 2, 2]), randn([4, 7])];
    expect(() => vmap(body)(wrong, matrix)).toThrow();
    check(body, [rand([4, ...a]), rand([...b])], dims(0, null));
    check(body, [rand([3, 4, ...a]), rand([...b])], dims(1, null), dims(0, null));
    check(body, [rand([...a]), rand([4, ...b])], dims(null, 0));
    check(body, [rand([...a]), rand([3, 4, ...b])], dims(null, 1), dims(null, 0));
    check(body, [rand([4, ...a]), rand([4, ...b])]);
    check(body, [rand([3, 4, ...a]), rand([4, 3, ...b])], dims(1, 0), dims(0, 0));
    check(body, [rand([3, ...a]), rand([4, ...b])], dims(null, 0), dims(0, null));
  });

  test("matmul of shared and separate factors, slogdet, trace and cross agree with single examples", () => {
    check((x, y) => orchard.matmul(x, y), [randn([5, 2, 2, 2]), randn([5, 7, 2])], dims(0, 0), dims(null, 0));
    for (const shape of [
      [4, 1, 1],
      [4, 2, 2],
      [4, 3, 2, 2],
    ])
      check((x) => Object.values(linalg.slogdet(x)), [rand(shape)]);
    check((x) => Object.values(linalg.slogdet(x)), [rand([3, 2, 2, 4])], dims(3));
    check((x) => orchard.trace(x), [rand([2, 4, 5])], dims(1));
    check((x) => orchard.trace(x), [rand([3, 2, 4, 5, 6])], dims(2), dims(0), dims(2));
    check((x, y) => orchard.cross(x, y), [rand([3, 2, 3]), rand([3, 2, 3])]);
    check((x, y) => orchard.cross(x, y), [rand([3, 3, 2, 3]), rand([3, 3, 2, 3])], dims(null, 1), dims(0, null));
    check((x) => transforms.grad((own: Tensor) => own.matmul(own).sum())(x), [randn([2, 3, 3])]);
  });
});

describe("vmap of reductions and norms agrees with single examples", () => {
  test.each(["sum", "mean"])("%s of all elements, or along axes, agrees with single examples", (name) => {
    unary((x) => mul(x, methodOf(x, name)()) as Tensor);
    check((x) => methodOf(x, name)(), [randn([4])]);
    for (const dim of [0, -1]) check((x) => methodOf(x, name)({ dim }), [randn([5])]);
    check((x) => methodOf(x, name)({ dim: 2 }), [randn([2, 5, 4, 3])], { dims: [2], out: 2 });
    check((x) => methodOf(x, name)({ dim: -2 }), [randn([7, 2, 5, 4, 3])], dims(2), dims(0));
  });

  test("argmax, oneHot, nllLoss, adaptiveAvgPool2d and groupNorm agree with single examples", () => {
    for (const dim of [undefined, 0, -1]) check((x) => orchard.argmax(x, { dim }), [randn([5, 2, 3])]);
    check((x) => orchard.oneHot(whole(x), { numClasses: 4 }), [randint(0, 3, [3, 2, 4])]);
    check((x) => orchard.oneHot(whole(x), { numClasses: 3 }), [randint(0, 3, [5])]);
    for (const reduction of ["mean", "sum", "none"] as const) {
      const body: Body = (x, target) => orchard.nllLoss(x, target, { reduction });
      check(body, [randn([3, 2, 5]), randint(0, 5, [3, 2])]);
      check(body, [randn([3, 2, 5]), randint(0, 5, [2])], dims(0, null));
    }
    for (const dim of [0, 1, 4])
      check((x) => orchard.adaptiveAvgPool2d(x, [3, 3]), [randn([3, 5, 4, 6, 5])], dims(dim));
    const norm: Body = (x, weight, bias) => orchard.groupNorm(x, 3, { weight, bias });
    check(norm, [randn([2, 3, 6, 5, 4]), randn([6]), randn([6])], dims(0, null, null));
    check(norm, [randn([2, 3, 6, 5, 4]), randn([2, 6]), randn([2, 6])]);
  });

  test.each([true, false])("batchNorm agrees with single examples, training %p", (training) => {
    for (const affine of [true, false]) {
      const body: Body = (x, mean, variance, weight, bias) => {
        const [own, other] = [mean.clone(), variance.clone()];
        const options = { runningMean: own, runningVar: other, training, ...(affine ? { weight, bias } : {}) };
        return [orchard.batchNorm(x, options), own, other];
      };
      const rows = (): Tensor => add(rand([4, 3]), 0.5) as Tensor;
      check(body, [randn([4, 8, 3, 5, 2]), rows(), rows(), randn([4, 3]), randn([4, 3])]);
    }
  });

  test.each([1, 2, 3] as const)(
    "conv%pd agrees with single examples, for every combination of shared operands",
    (axes) => {
      const of = (orchard as unknown as Record<string, Method>)[`conv${axes}d`];
      const size = new Array<number>(axes).fill(7);
      for (const options of [{}, { groups: 2, stride: 3, padding: 1, dilation: 2 }]) {
        const channels = "groups" in options ? 2 : 4;
        const operands = [randn([2, 4, ...size]), randn([6, channels, ...size.map(() => 3)]), randn([6])];
        for (let shared = 0; shared < 7; shared++) {
          const level = dims(...operands.map((_, at) => ((shared >> at) & 1 ? null : 0)));
          const given = operands.map((x, at) =>
            level.dims[at] === null ? x : orchard.stack([x, mul(x, 0.5) as Tensor]),
          );
          check((x, weight, bias) => of(x, weight, bias, options), given, level);
        }
      }
    },
  );
});

const split = (x: Tensor | readonly Tensor[]): readonly Tensor[] => listed(x);

describe("vmap of views agrees with single examples", () => {
  test("chunk, split, tensorSplit and unbind agree with single examples", () => {
    check((x) => split(orchard.chunk(x, 5, -1)), [rand([3, 2, 24])]);
    check((x) => split(orchard.chunk(x, 4, 0)), [rand([3, 23, 2, 5])], dims(2), dims(0));
    check((x) => split(orchard.split(x, 9, 1)), [rand([2, 3, 24])], dims(1));
    check((x) => split(orchard.split(x, [4, 8, 12], 1)), [rand([2, 3, 4, 24])], dims(1), dims(1));
    check((x) => split(orchard.tensorSplit(x, 5, -1)), [rand([3, 2, 24])]);
    check((x) => split(orchard.tensorSplit(x, [2, 9, 20], 1)), [rand([2, 3, 24])], dims(1));
    check((x) => split(orchard.unbind(x, -1)), [rand([3, 2, 5])]);
    check((x) => split(orchard.unbind(x, 0)), [rand([2, 3, 5])], dims(1));
  });

  test("diagonal, movedim, transpose, t, T and unfold agree with single examples", () => {
    const x = randn([3, 5, 4, 6, 2]);
    check((own) => orchard.diagonal(own, 1, 0, 1), [x]);
    check((own) => orchard.diagonal(own, 0, -2, -1), [x], { dims: [1], out: 1 });
    check((own) => orchard.diagonal(own, 0, 0, 1), [x], dims(1), dims(3), dims(1));
    check((own) => orchard.movedim(own, [1, 0], [0, 2]), [rand([2, 3, 4, 5])], dims(1));
    check((own) => orchard.movedim(own, 0, 1), [rand([3, 2, 4, 5, 6])], dims(2), dims(0), dims(2));
    check((own) => orchard.transpose(own, 3, 1), [rand([4, 2, 5, 3, 6])]);
    check((own) => own.t(), [rand([3, 2, 4, 5])], dims(2), dims(0));
    check((own) => own.t(), [rand([4])]);
    check((own) => own.T, [rand([2, 4, 5])], dims(1));
    check((own) => own.slidingWindows(0, 2, 1), [rand([3, 7, 5])]);
    check((own) => own.slidingWindows(-1, 2, 4), [rand([3, 7, 4, 6, 5])], dims(2), dims(0), dims(2));
  });

  test("narrow, select, slice, squeeze and unsqueeze agree with single examples", () => {
    check((x) => orchard.narrow(x, -1, 1, 3), [rand([3, 2, 5])]);
    check((x) => orchard.narrow(x, 1, 0, 0), [rand([3, 2, 4, 5])], dims(2), dims(0));
    check((x) => x.select(1, 1), [rand([2, 3, 5])], dims(1));
    check((x) => x.at("0:1"), [rand([3, 4, 5])]);
    check((x) => x.at(":", "1:3"), [rand([3, 5, 4])], dims(2));
    for (const dim of [undefined, 0, -1]) {
      check((x) => orchard.squeeze(x, dim), [rand([4, 1, 5, 1])]);
      check((x) => orchard.squeeze(x, dim), [rand([1, 4, 5])], dims(1));
      check((x) => orchard.squeeze(x, dim), [rand([3, 1, 1, 4])], dims(2), dims(0));
    }
    for (const dim of [0, 2, -1]) check((x) => orchard.unsqueeze(x, dim), [rand([2, 3, 5])], { dims: [1], out: -1 });
    expect(() => vmap((x: Tensor) => orchard.squeeze(x, 1))(rand([10]))).toThrow();
  });

  test("reshape, view, viewAs, expandAs, repeat, flatten, roll and asStrided agree with single examples", () => {
    check((x) => x.reshape([2, 5]), [rand([3, 10])]);
    check((x) => x.reshape([1, 1, 10]), [rand([2, 3, 5])], dims(1));
    check((x) => x.reshape([-1]), [rand([3, 4, 2, 5, 6, 2])], dims(5), dims(1), dims(2));
    check((x, y) => x.reshapeAs(y), [rand([10]), rand([3, 2, 5])], dims(null, 0));
    check((x) => x.view([1, 2, 1, 10]), [rand([3, 4, 5])]);
    expect(() => vmap((x: Tensor) => x.view([10]), { inDims: 1 })(rand([2, 3, 5]))).toThrow("no view");
    check((x, y) => x.viewAs(y), [rand([3, 10]), rand([2, 5])], dims(0, null));
    check((x, y) => x.expandAs(y), [rand([3, 1, 5]), rand([3, 2, 4, 5])]);
    check((x, y) => x.expandAs(y), [rand([3, 4, 2]), rand([3, 4, 2, 2, 5])], dims(0, 0), dims(0, 0), dims(0, 0));
    check((x) => orchard.repeat(x, [2, 3]), [rand([1, 3, 1])], dims(1));
    check((x) => orchard.flatten(x, 0, 1), [rand([2, 3, 4, 5])]);
    check((x) => orchard.roll(x, 3), [rand([3, 2, 4, 5])], dims(2), dims(0));
    const x = randn([5, 3, 2]).transpose(1, 2);
    const [rows, columns] = x.strides.slice(1) as [number, number];
    const strided = vmap((own: Tensor) =>
      orchard.asStrided(own, [3, 2], [columns, rows], { storageOffset: own.offset }),
    );
    expect(partsOf(strided(x))).toEqual(partsOf(x.transpose(1, 2).contiguous()));
  });

  test("real, imag, conj, viewAsReal and viewAsComplex agree with single examples", () => {
    const complex = (shape: number[]): Tensor => randn(shape, { dtype: "complex64" });
    for (const body of [orchard.real, orchard.imag, orchard.conj, orchard.viewAsReal] as unknown as Body[])
      unary(body, complex);
    unary((x) => orchard.conj(x));
    check((x) => orchard.viewAsComplex(x), [randn([2, 4, 5, 3, 2])], { dims: [2], out: 2 });
    check((x) => orchard.viewAsComplex(x), [randn([3, 4, 2])], dims(1));
    expect(() => vmap((x: Tensor) => orchard.viewAsComplex(x), { inDims: 1 })(randn([2, 4]))).toThrow("stride 1");
  });
});

describe("joins, copies and indices", () => {
  test("cat and stack of shared and separate tensors agree with single examples", () => {
    check((...all) => orchard.cat(all), [rand([5, 2]), rand([5, 3])]);
    check((...all) => orchard.cat(all), [rand([2]), rand([5, 0])], dims(null, 0));
    check((...all) => orchard.cat(all, -1), [rand([7, 2]), rand([7, 3, 5])], dims(null, 2));
    check((...all) => orchard.cat(all), [rand([3, 2]), rand([5, 3, 3])], dims(null, 0), dims(0, 0));
    check((...all) => orchard.stack(all), [rand([3]), rand([5, 3])], dims(null, 0));
    check((...all) => orchard.stack(all, -1), [rand([2, 7]), rand([2, 7, 5])], dims(null, 2));
    check((...all) => orchard.stack(all), [rand([3, 2]), rand([5, 2])], dims(null, 0), dims(0, null));
  });

  test("clone, contiguous, to, newZeros, zerosLike and properties agree with single examples", () => {
    unary((x) => x.clone());
    unary((x) => x.contiguous());
    unary((x) => x.to("float64"));
    unary((x) => x.long());
    check((x) => x.newZeros([2, 3]), [rand([5])]);
    check((x) => x.newZeros([3, 5]), [rand([5, 2])], dims(0), dims(0));
    expect(vmap((x: Tensor) => x.newEmpty([2, 3]))(rand([5])).shape).toEqual([5, 2, 3]);
    unary((x) => orchard.onesLike(x));
    const facts: unknown[] = [];
    vmap((x: Tensor) => {
      facts.push([...x.strides], x.isContiguous, x.isFloatingPoint(), x.dim(), x.numel());
      return x;
    })(randn([2, 3, 5, 7]).movedim(1, 0));
    expect(facts).toEqual([[105, 7, 1], false, true, 3, 70]);
  });

  test("indexSelect, takeAlongDim, indexFill and indexPut with different indices agree with single examples", () => {
    const index = randint(0, 3, [4, 2]);
    check((x, at) => orchard.indexSelect(x, whole(at), { dim: 1 }), [randn([4, 5, 3]), index]);
    check((x, at) => orchard.indexSelect(x, whole(at), { dim: 1 }), [randn([5, 3]), index], dims(null, 0));
    check((x, at) => x.clone().indexFill_(-2, whole(at), 5), [randn([4, 5, 5]), index]);
    check((x, at) => x.clone().indexFill_(0, whole(at), 1), [randn([3]), index], dims(null, 0));
    const values = randn([4, 2, 5]);
    const put: Body = (x, at, own) => x.clone().indexPut_([whole(at)], own);
    check(put, [
      randn([4, 3, 5]),
      tensor(
        [
          [0, 1],
          [2, 1],
          [1, 0],
          [2, 0],
        ],
        { dtype: "int64" },
      ),
      values,
    ]);
    check(put, [randn([4, 3, 5]), tensor([0, 2], { dtype: "int64" }), values.select(0, 0)], dims(0, null, null));
    check(
      put,
      [
        randn([4, 3, 5]),
        tensor(
          [
            [0, 1],
            [2, 1],
            [1, 0],
            [2, 0],
          ],
          { dtype: "int64" },
        ),
        values.select(0, 0),
      ],
      dims(0, 0, null),
    );
    for (const rank of [3, 4])
      for (const shape of [
        [4, 3],
        [4, 3, 1],
      ]) {
        const x = randn([4, ...new Array<number>(rank).fill(5)]);
        const at = randint(0, 5, shape);
        for (const level of [dims(0, 0), dims(null, 0), dims(0, null)]) {
          const given = [level.dims[0] === null ? x.select(0, 0) : x, level.dims[1] === null ? at.select(0, 0) : at];
          check((own, places) => own.at(whole(places)), given, level);
          check((own, places) => own.at(":", whole(places)), given, level);
        }
      }
  });

  test("in-place changes of views of each other agree with single examples", () => {
    const body: Body = (leaf) => {
      const base = leaf.mul(leaf);
      const view = base.transpose(0, 1);
      view.at("2:4", "2:4").mul_(2);
      view.at("0:2", "0:2").diagonal().sin_();
      return [view.at("1:3", "1:3").cos_().clone(), base];
    };
    check(body, [randn([3, 4, 4])]);
    check(body, [randn([4, 4, 3])], dims(2));
    check(body, [randn([2, 4, 4, 3])], dims(3), dims(0));
  });

  test("Linear and BatchNorm1d by functionalCall agree with single examples", () => {
    const model = new nn.Linear(3, 2);
    const f: Body = (weight, bias, x) => transforms.functionalCall(model, { weight, bias }, x) as Tensor;
    check(f, [randn([4, 2, 3]), randn([4, 2]), randn([4, 5, 3])]);
    check(f, [randn([4, 2, 3]), randn([4, 2]), randn([5, 3])], dims(0, 0, null));
  });
});

describe("chunks and random numbers behave as documented", () => {
  test.each([0, 1, 2])("every chunkSize gives the same along axis %p", (dim) => {
    const x = randn([4, 5, 6]);
    for (const out of [0, 1, 2]) {
      const f = (own: Tensor): Tensor => own.sin();
      const together = vmap(f, { inDims: dim, outDims: out })(x);
      for (const chunkSize of [1, 2, 3, 4, 7, 100]) {
        const parts = vmap(f, { inDims: dim, outDims: out, chunkSize })(x);
        expect(partsOf(parts.contiguous())).toEqual(partsOf(together.contiguous()));
      }
    }
    expect(() => vmap((own: Tensor) => own, { chunkSize: 0 })).toThrow("chunkSize");
  });
});
