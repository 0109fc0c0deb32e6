/** Functions and kernels of the caller under jvp and vmap, and vmap of linear algebra. */
import { describe, expect, test } from "bun:test";
import type { KernelVmapInfo, MetalKernel } from "../../src/index.ts";
import * as library from "../../src/index.ts";
// biome-ignore lint/suspicious/noShadowRestrictedNames: PyTorch users know it by this name
import { Function, type FunctionContext, type VmapInfo } from "../../src/ops/gradient/function.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { difference } from "./samples.ts";

const { linalg, manualSeed, metalKernel, mul, noGrad, ones, randn, tensor, transforms } = library;
const { jvp, vmap } = transforms;
const data = (x: Tensor) => x.dataSync();

manualSeed(2);

/** x³, whose backward is differentiable. */
class Cube extends Function {
  static forward(context: FunctionContext, x: Tensor): Tensor {
    context.saveForBackward(x);
    return x.mul(x).mul(x);
  }
  static backward(context: FunctionContext, gradient: Tensor | null): Tensor {
    const [x] = context.savedTensors;
    return gradient!.mul(x.square()).mul(3);
  }
}

/** x³ with a gradient that is read and computed by the host. */
class HostCube extends Function {
  static forward(context: FunctionContext, x: Tensor): Tensor {
    context.saveForBackward(x);
    return tensor(
      [...data(x)].map((value) => Number(value) ** 3),
      { dtype: x.dtype, shape: x.shape },
    ) as Tensor;
  }
  static backward(context: FunctionContext, gradient: Tensor | null): Tensor {
    const [values, gradients] = [data(context.savedTensors[0]), data(gradient!)];
    const results = [...values].map((value, at) => 3 * Number(value) ** 2 * Number(gradients[at]));
    return tensor(results, { dtype: gradient!.dtype, shape: gradient!.shape }) as Tensor;
  }
}

/** The same function with both rules. */
class RuledCube extends HostCube {
  static calls: VmapInfo[] = [];
  static jvp(context: FunctionContext, tangent: Tensor | null): Tensor {
    return tangent!.mul(context.savedTensors[0].square()).mul(3);
  }
  static vmap(info: VmapInfo, x: Tensor): Tensor {
    RuledCube.calls.push(info);
    return RuledCube.apply(x);
  }
}

describe("jvp of a Function uses its backward", () => {
  const [x, t] = [randn([5], { dtype: "float64" }), randn([5], { dtype: "float64" })];
  const expected = mul(mul(x.square(), t), 3) as Tensor;

  test("a differentiable backward gives the tangent", () => {
    const { tangent } = jvp((v: Tensor) => Cube.apply(v), [x], [t]);
    expect(difference(data(tangent), data(expected))).toBeLessThan(1e-14);
  });

  test("a jvp rule gives the tangent, of second order too", () => {
    const { tangent } = jvp((v: Tensor) => RuledCube.apply(v), [x], [t]);
    expect(difference(data(tangent), data(expected))).toBeLessThan(1e-14);
    const along = (f: (v: Tensor) => Tensor) => (v: Tensor) => jvp(f, [v], [t]).tangent;
    const second = along(along((v) => RuledCube.apply(v)))(x);
    expect(difference(data(second), data(mul(mul(x, t.square()), 6) as Tensor))).toBeLessThan(1e-14);
  });

  test("without either rule, the error says what to do", () => {
    expect(() => jvp((v: Tensor) => HostCube.apply(v), [x], [t])).toThrow(
      "the gradient of HostCube is not differentiable, so its tangent is unknown; write its backward with operations " +
        "of this package, or give it a jvp rule",
    );
    class Recorded extends Cube {
      static override backward(context: FunctionContext, gradient: Tensor | null): Tensor {
        return noGrad(() => Cube.backward(context, gradient));
      }
    }
    expect(() => jvp((v: Tensor) => Recorded.apply(v), [x], [t])).toThrow("the gradient of Recorded is not");
    class Wrong extends RuledCube {
      static override jvp(): Tensor {
        return t.sum();
      }
    }
    expect(() => jvp((v: Tensor) => Wrong.apply(v), [x], [t])).toThrow("expected jvp to return a tangent for each");
  });

  test("under vmap, a Function sees one example, or all of them in its vmap rule", () => {
    const points = randn([3, 5], { dtype: "float64" });
    const cubes = mul(mul(points, points), points) as Tensor;
    expect(difference(data(vmap((v: Tensor) => Cube.apply(v))(points)), data(cubes))).toBeLessThan(1e-14);
    expect(() => vmap((v: Tensor) => HostCube.apply(v))(points)).toThrow("can't be read");
    const ruled = (v: Tensor) => RuledCube.apply(v);
    expect(difference(data(vmap(ruled, { inDims: 1 })(points.T)), data(cubes))).toBeLessThan(1e-14);
    expect(RuledCube.calls.at(-1)).toEqual({ batchSize: 3, inDims: [0], randomness: "error" });
    const gradients = vmap(transforms.grad((v: Tensor) => ruled(v).sum()))(points);
    expect(difference(data(gradients), data(mul(points.square(), 3) as Tensor))).toBeLessThan(1e-14);
    class Wrong extends RuledCube {
      static override vmap(): Tensor {
        return tensor([1, 2]);
      }
    }
    expect(() => vmap((v: Tensor) => Wrong.apply(v))(points)).toThrow("whose first axis has 3 examples");
  });
});

describe("jvp of a metalKernel uses its rules", () => {
  const source = `
    kernel void squared(device const float* x, device float* y, uint i [[thread_position_in_grid]]) {
      y[i] = x[i] * x[i];
    }`;
  const options = {
    name: "squared",
    source,
    shapes: { y: "x" } as const,
    fallback: ({ x }: { x: Tensor }) => x.mul(x),
  };
  const alone = source.replace("squared", "squared_alone");
  const [x, t] = [randn([4]), randn([4])];
  const expected = data(mul(mul(x, t), 2) as Tensor);

  test("the tangent of a metalKernel comes from a differentiable backward, or from jvp", () => {
    const byBackward = metalKernel<{ x: Tensor }, "y">({
      ...options,
      backward: ({ y }, { x }) => ({ x: y.mul(x).mul(2) }),
    });
    const byRule = metalKernel<{ x: Tensor }, "y">({
      ...options,
      jvp: ({ x: tangent }, { x }) => ({ y: tangent.mul(x).mul(2) }),
    });
    for (const kernel of [byBackward, byRule]) {
      const { tangent } = jvp((v: Tensor) => kernel.apply({ x: v }).y, [x], [t]);
      expect(difference(data(tangent), expected)).toBeLessThan(1e-6);
    }
    const neither = metalKernel<{ x: Tensor }, "y">(options);
    expect(() => jvp((v: Tensor) => neither.apply({ x: v }).y, [x], [t])).toThrow("give metalKernel() a backward");
  });

  test("under vmap without a rule, a metalKernel runs once for each example, with a warning", () => {
    const kernel = metalKernel<{ x: Tensor }, "y">({ ...options, name: "squared_alone", source: alone });
    const points = randn([3, 4]);
    const lines: unknown[] = [];
    const { warn } = console;
    console.warn = (line: unknown) => lines.push(line);
    try {
      const found = vmap((v: Tensor) => kernel.apply({ x: v }).y)(points);
      expect(difference(data(found), data(points.square()))).toBeLessThan(1e-6);
    } finally {
      console.warn = warn;
    }
    expect(String(lines)).toContain("squared_alone runs once for each example of vmap: give metalKernel() a vmap rule");
  });
});

describe("a metalKernel may have a vmap rule", () => {
  type Values = { x: Tensor; w: Tensor; power: number };
  const infos: KernelVmapInfo<Values>[] = [];
  let calls = 0;
  /** Multiplies rows of x elementwise by w: one vector, or one for each row. */
  const scaled: MetalKernel<Values, "y"> = metalKernel({
    name: "scaled",
    source: `
      #include <metal_stdlib>
      kernel void scaled(device const float* x, device const float* w, device float* y, constant int& power,
                         constant int& x_size, constant int& w_size, uint i [[thread_position_in_grid]]) {
        const int at = w_size < x_size ? i % w_size : i;
        y[i] = x[i] * (power == 2 ? w[at] * w[at] : w[at]);
      }`,
    shapes: { y: "x" },
    fallback: ({ x, w, power }) => {
      calls++;
      return x.mul(power === 2 ? w.square() : w);
    },
    backward: ({ y }, { x, w, power }) => {
      const toW = y.mul(x).mul(power === 2 ? w.mul(2) : library.onesLike(w)) as Tensor;
      return {
        x: y.mul(power === 2 ? w.square() : w),
        w: w.rank < toW.rank ? toW.sum({ dim: Array.from({ length: toW.rank - w.rank }, (_, axis) => axis) }) : toW,
      };
    },
    vmap(info, { x, w, power }) {
      infos.push(info);
      const [rows, columns] = x.shape.slice(-2);
      const all = info.inDims.x === 0 ? x : x.expand([info.batchSize, rows, columns]);
      const vectors = info.inDims.w === 0 ? w.unsqueeze(-2).expand([info.batchSize, rows, columns]) : w;
      return { y: scaled.apply({ x: all, w: vectors, power }).y };
    },
  });
  const f = (x: Tensor, w: Tensor): Tensor => scaled.apply({ x, w, power: 2 }).y;
  const [x, w] = [randn([5, 2, 3]), randn([5, 3])];
  const [alone, vector] = [x.select(0, 0), w.select(0, 0)];
  const cases: readonly (readonly [dims: readonly (0 | null)[], values: readonly [Tensor, Tensor]])[] = [
    [
      [0, 0],
      [x, w],
    ],
    [
      [0, null],
      [x, vector],
    ],
    [
      [null, 0],
      [alone, w],
    ],
  ];
  const at = (value: Tensor, dim: 0 | null, index: number): Tensor => (dim === 0 ? value.select(0, index) : value);

  test.each(cases)(
    "with examples along %p, the kernel is one call, with the values of calls of single examples",
    (dims, own) => {
      for (const backend of ["cpu", "metal"] as const)
        library.withBackend(backend, () => {
          calls = 0;
          const found = vmap(f, { inDims: [...dims] })(...own);
          if (backend === "cpu") expect(calls).toBe(1);
          expect(infos.at(-1)).toEqual({
            batchSize: 5,
            randomness: "error",
            inDims: { x: dims[0]!, w: dims[1]!, power: null },
          });
          for (let index = 0; index < 5; index++) {
            const wanted = f(at(own[0], dims[0]!, index), at(own[1], dims[1]!, index));
            expect(difference(data(found.select(0, index)), data(wanted))).toBeLessThan(1e-6);
          }
        });
    },
  );

  test("per-sample gradients, tangents and nested levels go through the rule", () => {
    const loss = (a: Tensor, b: Tensor): Tensor => f(a, b).sin().sum();
    const perSample = vmap(transforms.grad(loss, [0, 1]))(x, w) as [Tensor, Tensor];
    const along = (a: Tensor, b: Tensor): Tensor => jvp(f, [a, b], [alone, vector]).tangent;
    const tangents = vmap(along)(x, w);
    for (let index = 0; index < 5; index++) {
      const own = [x.select(0, index), w.select(0, index)] as const;
      const wanted = transforms.grad(loss, [0, 1])(...own) as [Tensor, Tensor];
      for (const argument of [0, 1] as const)
        expect(difference(data(perSample[argument].select(0, index)), data(wanted[argument]))).toBeLessThan(1e-5);
      expect(difference(data(tangents.select(0, index)), data(along(...own)))).toBeLessThan(1e-5);
    }
    const pairs = vmap((a: Tensor): Tensor => vmap((b: Tensor): Tensor => f(a, b))(w))(x);
    const wanted = f(x.select(0, 3), w.select(0, 4));
    expect(difference(data(pairs.select(0, 3).select(0, 4)), data(wanted))).toBeLessThan(1e-6);
  });

  test.each([
    [
      "y",
      (): unknown => ({ y: ones([2, 3]) }),
      "expected vmap to return float32[5, 2, 3] as the result y, with 5 examples",
    ],
    ["nothing", (): unknown => null, "along the first axis, got undefined"],
  ] as const)("a rule that returns %s wrongly is an error", (_, rule, message) => {
    const wrong: MetalKernel<{ x: Tensor }, "y"> = metalKernel({
      name: "squared",
      source: "kernel void squared(device float* y) {}",
      shapes: { y: "x" },
      fallback: ({ x: value }) => value.mul(value),
      vmap: rule as unknown as () => { y: Tensor },
    });
    expect(() => vmap((v: Tensor) => wrong.apply({ x: v }).y)(x)).toThrow(message);
  });
});

describe("linear algebra works under vmap", () => {
  const general = randn([3, 4, 4], { dtype: "float64" });
  const definite = general.matmul(general.transpose(1, 2)).add(library.eye(4, { dtype: "float64" })) as Tensor;
  const right = randn([4, 2], { dtype: "float64" });
  const turned = randn([4, 4], { dtype: "float64" });
  const adjoint = (a: Tensor): Tensor => library.conj(a.transpose(0, 1));
  const ofComplex: Readonly<Record<string, (a: Tensor) => Tensor>> = {
    "complex cholesky": (a) =>
      library.viewAsReal(linalg.cholesky(a.matmul(adjoint(a)).add(library.eye(4, { dtype: "complex128" })) as Tensor)),
    "complex eigh": (a) => linalg.eigh(a.add(adjoint(a)) as Tensor).eigenvalues as Tensor,
    "complex svd": (a) => library.abs(linalg.svd(a).vh) as Tensor,
    "complex qr": (a) => library.viewAsReal(linalg.qr(a).r),
    "complex inv": (a) => library.viewAsReal(linalg.inv(a)),
    "complex slogdet": (a) => library.viewAsReal(linalg.slogdet(a).sign),
    "complex pinv": (a) => library.viewAsReal(linalg.pinv(a)),
    "complex lstsq": (a) => library.viewAsReal(linalg.lstsq(a, library.complex(right, right)).solution),
  };
  const functions: Readonly<Record<string, (a: Tensor) => Tensor>> = {
    cholesky: (a) => linalg.cholesky(a),
    solve: (a) => linalg.solve(a, right),
    inv: (a) => linalg.inv(a),
    det: (a) => linalg.det(a),
    eigh: (a) => linalg.eigh(a).eigenvectors,
    eig: (a) => library.abs(linalg.eig(a).eigenvectors) as Tensor,
    ...Object.fromEntries(
      Object.entries(ofComplex).map(([name, f]) => [name, (a: Tensor) => f(library.complex(a, turned) as Tensor)]),
    ),
    svd: (a) => linalg.svd(a).vh,
    qr: (a) => linalg.qr(a).r,
    lstsq: (a) => linalg.lstsq(a, right).solution,
    luSolve: (a) => {
      const { lu, pivots } = linalg.luFactor(a);
      return linalg.luSolve(lu, pivots, right);
    },
    solveTriangular: (a) => linalg.solveTriangular(linalg.cholesky(a), right, { upper: false }),
    matrixExp: (a) => linalg.matrixExp(mul(a, 0.1) as Tensor),
    householderProduct: (a) => {
      const { a: factors, tau } = linalg.geqrf(a);
      return linalg.householderProduct(factors, tau);
    },
  };

  test.each(Object.entries(functions))("%s, its gradients and tangents agree with single examples", (_, f) => {
    const gradient = transforms.grad((a: Tensor) => f(a).sin().sum());
    const along = (a: Tensor) => jvp(f, [a], [general.select(0, 0)]).tangent;
    for (const each of [f, gradient, along]) {
      const found = vmap(each)(definite);
      for (let at = 0; at < 3; at++)
        expect(difference(data(found.select(0, at)), data(each(definite.select(0, at))))).toBeLessThan(1e-8);
    }
  });
});
