/**
 * Autograd of attention: saved tensors, repeated passes over the same graph, backends that change between the passes,
 * routes.
 */
import { describe, expect, test } from "bun:test";
import {
  AutogradError,
  backward,
  codepaths,
  type FlashAttentionOptions,
  flashAttention,
  Generator,
  grad,
  mul,
  noGrad,
  ones,
  randn,
  resetCodepaths,
  scaledDotProductAttention,
  sum,
  type Tensor,
  transpose,
  withBackend,
  withStrict,
} from "../../../src/index.ts";
import { FlashAttention } from "../../../src/ops/attention/function.ts";
import { type AttentionAttributes, dropoutOf } from "../../../src/ops/attention/problem.ts";
import { FunctionContext } from "../../../src/ops/gradient/function.ts";
import { on, ways } from "./run.ts";

const numbers = (x: Tensor) => Array.from(x.dataSync(), Number);
const generator = new Generator(6);
const parameter = (...shape: number[]) => randn(shape, { generator, requiresGrad: true });
const inputs = () => [parameter(1, 2, 6, 4), parameter(1, 2, 7, 4), parameter(1, 2, 7, 3)] as const;
const dropping = (): FlashAttentionOptions => ({ dropout: 0.4, causal: true, generator: new Generator(3) });
const outputOf = (operands: readonly [Tensor, Tensor, Tensor], options: FlashAttentionOptions): Tensor =>
  flashAttention(...operands, options as object);

test("the forward keeps its operands and results, and nothing as large as the scores", () => {
  const context = new FunctionContext();
  const operands = [parameter(1, 2, 300, 4), parameter(1, 1, 400, 4), parameter(1, 1, 400, 3)];
  const attributes: AttentionAttributes = {
    inputs: ["q", "k", "v"],
    outputs: ["out", "logSumExp", "logSumExpLow"],
    scale: 1,
    softcap: 2,
    packed: undefined,
    alignment: "bottom-right",
    band: { left: 5, right: 0 },
    dropout: dropoutOf(0.5, [1, 2]),
  };
  const results = withBackend("reference", () =>
    FlashAttention.forward(context, { attributes, backend: undefined }, ...operands),
  );
  expect(context.toSave.slice(0, 5)).toEqual([...operands, ...results]);
  expect(context.toSave.slice(5).map(({ shape }) => shape)).toEqual([[1, 2, 300]]); // the log-sum-exp's low part
  expect(results.map(({ shape }) => shape)).toEqual([
    [1, 2, 300, 3],
    [1, 2, 300],
  ]);
});

describe.each(ways)("the backward pass of attention on $name", (way) => {
  const gradients = (out: Tensor, operands: readonly Tensor[], options = {}) => {
    const gradOutputs = [randn(out.shape, { generator: new Generator(1) })];
    return grad(out, operands, { gradOutputs, ...options }).map(numbers);
  };

  test("a second pass needs retainGraph, and gives the same bits", () => {
    on(way, () => {
      const operands = inputs();
      const out = outputOf(operands, { ...dropping(), path: way.path });
      const first = gradients(out, operands, { retainGraph: true });
      expect(gradients(out, operands)).toEqual(first);
      expect(() => gradients(out, operands)).toThrow(AutogradError);
      expect(() => gradients(out, operands)).toThrow(/retainGraph/);
    });
  });

  test("backward accumulates gradients over several passes of one graph and of others", () => {
    on(way, () => {
      const operands = inputs();
      const run = () => outputOf(operands, { ...dropping(), path: way.path });
      const out = run();
      const cotangent = randn(out.shape, { generator: new Generator(1) });
      const once = grad(out, operands, { gradOutputs: [cotangent], retainGraph: true }).map(numbers);
      // `grad` does not change `operand.grad`
      expect(operands.map((operand) => operand.grad)).toEqual([null, null, null]);
      const expectTimes = (times: number) => {
        for (const [at, operand] of operands.entries())
          for (const [index, value] of numbers(operand.grad!).entries())
            expect(value).toBeCloseTo(times * once[at][index], 5);
      };
      backward(out, cotangent, { retainGraph: true });
      expectTimes(1);
      backward(out, cotangent);
      expectTimes(2);
      backward(run(), cotangent);
      expectTimes(3);
      expect(() => backward(out, cotangent)).toThrow(AutogradError);
      expectTimes(3);
    });
  });

  test("one tensor as queries, keys and values has the sum of the three gradients", () => {
    on(way, () => {
      const x = parameter(1, 2, 5, 4);
      const [whole] = gradients(outputOf([x, x, x], { path: way.path }), [x]);
      const apart = [x, x, x].map((each) => mul(each, 1) as Tensor) as [Tensor, Tensor, Tensor];
      const parts = gradients(outputOf(apart, { path: way.path }), apart);
      for (const [at, value] of whole.entries())
        expect(value).toBeCloseTo(
          parts.reduce((total, part) => total + part[at], 0),
          5,
        );
    });
  });

  test.each([{ which: [0] }, { which: [1] }, { which: [2] }, { which: [0, 2] }, { which: [1, 2] }])(
    "gradients of operands $which alone equal those of all",
    ({ which }: { which: readonly number[] }) => {
      on(way, () => {
        const operands = inputs();
        const all = gradients(outputOf(operands, { ...dropping(), path: way.path }), operands);
        for (const [at, operand] of operands.entries()) operand.requiresGrad = which.includes(at);
        const some = which.map((at) => operands[at]);
        const own = gradients(outputOf(operands, { ...dropping(), path: way.path }), some);
        expect(own).toEqual(which.map((at) => all[at]));
      });
    },
  );

  test("nothing is recorded in noGrad, or without parameters", () => {
    on(way, () => {
      const operands = inputs();
      expect(noGrad(() => outputOf(operands, { path: way.path })).requiresGrad).toBe(false);
      for (const operand of operands) operand.requiresGrad = false;
      expect(outputOf(operands, { path: way.path }).requiresGrad).toBe(false);
    });
  });

  test("gradients have the layouts of views, and are added to the base tensors", () => {
    on(way, () => {
      const x = parameter(2, 5, 3, 4); // [batch, rows, heads, dim], as projections return them
      const q = transpose(x, 1, 2);
      const out = outputOf([q, q, q], { causal: true, path: way.path });
      const cotangent = transpose(randn([2, 5, 3, 4], { generator: new Generator(2) }), 1, 2);
      const [through] = grad(out, [x], { gradOutputs: [cotangent], retainGraph: true });
      const [direct] = grad(out, [q], { gradOutputs: [cotangent.contiguous()] });
      expect(numbers(through)).toEqual(numbers(transpose(direct, 1, 2)));
    });
  });
});

test("a call keeps only its results: an operand's memory is released with the operand", () => {
  const operands = [0, 1, 2].map(() => randn([2, 5, 4])) as [Tensor, Tensor, Tensor];
  const options = { alibi: [0.1], mask: ones([5, 5], { dtype: "bool" }), dropout: 0.5 };
  const results = ways.map((way) => on(way, () => outputOf(operands, { ...options, path: way.path })));
  for (const result of results) result.dataSync();
  const all = [...operands, options.mask];
  for (const operand of all) operand.dispose();
  expect(all.map(({ storage }) => storage.isReleased)).toEqual(all.map(() => true));
});

const fused = ways.filter(({ path }) => path === "fused");
const changes = fused.flatMap((from) => fused.map((to) => [from.backend, to.backend] as const));

test.each(changes)("forward on %s and backward on %s give the same gradients", (from, to) => {
  const operands = inputs();
  const cotangent = randn([1, 2, 6, 3], { generator: new Generator(1) });
  const passes = (forward: typeof from, backward: typeof to) =>
    withStrict(true, () => {
      const out = withBackend(forward, () => outputOf(operands, dropping()));
      return withBackend(backward, () => grad(out, operands, { gradOutputs: [cotangent] })).map(numbers);
    });
  const expected = passes("reference", "reference");
  for (const [at, gradient] of passes(from, to).entries())
    for (const [index, value] of gradient.entries()) expect(value).toBeCloseTo(expected[at][index], 5);
});

test("a tensor that was changed in place later is detected", () => {
  const operands = inputs();
  const out = withBackend("reference", () => outputOf(operands, {}));
  operands[1].storage.version++;
  expect(() => grad(sum(out), operands)).toThrow(/FlashAttention needs .* changed in place/);
});

describe("gradients of third order", () => {
  const third = (path: "fused" | "unfused") =>
    withBackend("reference", () => {
      const [q, k, v] = inputs();
      const create = { createGraph: true };
      const [first] = grad(sum(flashAttention(q, k, v, { path })), [q], create);
      const [second] = grad(sum(mul(first, first)), [q], create);
      return grad(sum(mul(second, second)), [q])[0];
    });

  test("third-order gradients are rejected if attention is fused", () => {
    expect(() => third("fused")).toThrow(/\[flashAttention\].*unfused/);
  });

  test("third-order gradients are supported if attention is unfused", () => {
    expect(numbers(third("unfused")).every(Number.isFinite)).toBe(true);
  });
});

describe("the backend of attention is chosen by rules", () => {
  const backendsOf = (body: () => unknown) => {
    resetCodepaths();
    body();
    const names = ["attentionForward", "attentionBackward", "softmax", "matmul"];
    return codepaths()
      .filter(({ operation }) => names.includes(operation))
      .map(({ operation, backend }) => `${operation} ${backend}`);
  };

  test("a backend's name selects both passes", () => {
    const operands = inputs();
    const run = () => grad(sum(outputOf(operands, { path: "reference" })), operands);
    expect(backendsOf(run).sort()).toEqual(["attentionBackward reference", "attentionForward reference"]);
  });

  test.each([
    [257, 4],
    [4, 300],
  ])("dims of %d and %d have no fused kernel, and are computed unfused", (dim, valueDim) => {
    const [q, k, v] = [parameter(1, 2, 3, dim), parameter(1, 2, 5, dim), parameter(1, 2, 5, valueDim)];
    let out: Tensor | undefined;
    const operations = backendsOf(() => {
      out = flashAttention(q, k, v);
    });
    expect(operations.filter((name) => name.startsWith("attention"))).toEqual([]);
    expect(numbers(out!)).toEqual(numbers(flashAttention(q, k, v, { path: "unfused" })));
  });
});

describe("scaledDotProductAttention has PyTorch's names", () => {
  const same = (a: Tensor, b: Tensor) => expect(numbers(a)).toEqual(numbers(b));

  test("scaledDotProductAttention equals flashAttention, with PyTorch's names", () => {
    withBackend("reference", () => {
      const [q, k, v] = inputs();
      const [mask, bias] = [randn([6, 7], { generator }).gt(0), randn([6, 7], { generator })];
      same(scaledDotProductAttention(q, k, v, { attnMask: mask }), flashAttention(q, k, v, { mask }));
      same(
        scaledDotProductAttention(q, k, v, { attnMask: bias, scale: 0.3 }),
        flashAttention(q, k, v, { bias, scale: 0.3 }),
      );
      same(scaledDotProductAttention(q, k, v, { isCausal: true }), flashAttention(q, k, v, { causal: "top-left" }));
      const [one, other] = [new Generator(2), new Generator(2)];
      const dropped = flashAttention(q, k, v, { dropout: 0.5, generator: other });
      same(scaledDotProductAttention(q, k, v, { dropoutP: 0.5, generator: one }), dropped);
    });
  });

  test("scaledDotProductAttention shares the heads of keys with enableGqa", () => {
    withBackend("reference", () => {
      const [q, k, v] = [parameter(1, 4, 3, 2), parameter(1, 2, 3, 2), parameter(1, 2, 3, 2)];
      same(scaledDotProductAttention(q, k, v, { enableGqa: true }), flashAttention(q, k, v));
    });
  });
});
