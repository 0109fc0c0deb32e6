/** Hooks of modules: when they are called, with which arguments, and what they may change. */
import { describe, expect, test } from "bun:test";
import {
  ArgumentError,
  Generator,
  grad,
  nn,
  randn,
  relu,
  type Tensor,
  tensor,
  tidy,
  zeros,
} from "../../../src/index.ts";
import { bitsOf } from "../../optim/run.ts";

const seeded = () => ({ generator: new Generator(2) });
const x = (...shape: number[]) => randn(shape, { ...seeded(), requiresGrad: true });
const linear = () => new nn.Linear(3, 2, seeded());
const numbers = (own: Tensor | null) => own && Array.from(own.dataSync() as Float32Array);

describe("hooks run before and after forward()", () => {
  test("hooks are called in order, before and after, and not after their removal", () => {
    const [layer, calls] = [linear(), [] as string[]];
    const log = (name: string) => (): undefined => void calls.push(name);
    const removes = [
      layer.registerForwardHook(log("after 1")),
      layer.registerForwardPreHook(log("before 1")),
      layer.registerForwardPreHook(log("before 2")),
      layer.registerForwardHook(log("after 2")),
    ];
    layer.forward(x(1, 3));
    expect(calls.splice(0)).toEqual(["before 1", "before 2", "after 1", "after 2"]);
    removes[1]();
    removes[1](); // removes nothing more
    removes[0]();
    layer.forward(x(1, 3));
    expect(calls.splice(0)).toEqual(["before 2", "after 2"]);
    removes[2]();
    removes[3]();
    layer.forward(x(1, 3));
    expect(calls).toEqual([]);
    expect(Object.hasOwn(layer, "forward")).toBe(false);
  });

  test("a function added twice is two hooks, and a hook may remove itself", () => {
    const [layer, input] = [linear(), x(1, 3)];
    let count = 0;
    const hook = (): undefined => void count++;
    const once = layer.registerForwardHook(() => once() as undefined);
    layer.registerForwardHook(hook);
    const remove = layer.registerForwardHook(hook);
    layer.forward(input);
    layer.forward(input);
    remove();
    layer.forward(input);
    expect(count).toBe(5);
  });

  test("hooks receive the module, its arguments and its result, and replace them", () => {
    const layer = new nn.Bilinear(2, 2, 1, seeded());
    const [a, b] = [x(4, 2), x(4, 2)];
    const expected = numbers(layer.forward(b, a))!;
    layer.registerForwardPreHook((module, inputs) => {
      expect(module).toBe(layer);
      expect(inputs).toEqual([a, b]);
      return [b, a];
    });
    layer.registerForwardHook((_, inputs, output) => {
      expect(inputs).toEqual([b, a]);
      return output.mul(2);
    });
    expect(numbers(layer.forward(a, b))).toEqual(expected.map((value) => 2 * value));
  });

  test("without hooks nothing changes: state, names, printing, and bits of results", () => {
    const [layer, input] = [new nn.Sequential(linear(), relu, new nn.LayerNorm(2)), x(4, 3)];
    const printed = [String(layer), layer.summary(), Object.keys(layer.stateDict()).join()];
    const plain = bitsOf([layer.forward(input)]);
    for (const own of layer.modules()) own.registerForwardHook(() => undefined);
    expect([String(layer), layer.summary(), Object.keys(layer.stateDict()).join()]).toEqual(printed);
    expect(bitsOf([layer.forward(input)])).toBe(plain);
  });

  test("hooks are called wherever modules call each other: chains, stacks, models with fused norms", () => {
    const seen: string[] = [];
    const watch = (model: nn.Module) => {
      for (const [name, own] of model.namedModules()) own.registerForwardHook((): undefined => void seen.push(name));
    };
    const encoder = new nn.TransformerEncoder(
      new nn.TransformerEncoderLayer(4, 2, { dimFeedforward: 4, ...seeded() }),
      2,
    ).eval();
    watch(encoder);
    encoder.forward(x(3, 1, 4));
    expect(seen.splice(0)).toEqual(
      [0, 1]
        .flatMap((at) => [
          ...["self_attn.out_proj", "self_attn", "dropout1", "norm1", "linear1", "dropout", "linear2"].map(
            (name) => `layers.${at}.${name}`,
          ),
          ...["dropout2", "norm2", ""].map((name) => [`layers.${at}`, name].filter(Boolean).join(".")),
        ])
        .concat(""),
    );

    const sizes = { vocabularySize: 5, contextLength: 4, layers: 2, heads: 1, width: 4 };
    for (const model of [new nn.GPT({ ...sizes, ...seeded() }).eval(), new nn.Llama({ ...sizes, ...seeded() })]) {
      const tokens = tensor([[1, 2, 3]], { dtype: "int32" });
      const plain = numbers(model.forward(tokens))!;
      watch(model);
      for (const [at, value] of numbers(model.forward(tokens))!.entries()) expect(value).toBeCloseTo(plain[at], 5);
      const called = new Set(seen.splice(0));
      const silent = [...model.namedModules().keys()].filter((name) => !called.has(name));
      // rows of a table are read without a call of its module
      expect(silent).toEqual(model instanceof nn.GPT ? ["positionEmbedding"] : []);
    }
  });
});

describe("hooks run in the backward pass", () => {
  test.each([0, 1, 2].flatMap((hooks) => [0, 1, 2].map((preHooks) => [hooks, preHooks] as const)))(
    "%i hooks and %i pre-hooks are each called once per pass, the pre-hooks first",
    (hooks, preHooks) => {
      const [layer, calls] = [linear(), [] as string[]];
      for (let at = 0; at < hooks; at++) layer.registerFullBackwardHook((): undefined => void calls.push(`hook ${at}`));
      for (let at = 0; at < preHooks; at++)
        layer.registerFullBackwardPreHook((): undefined => void calls.push(`pre-hook ${at}`));
      layer.forward(x(4, 3)).sum().backward();
      const named = (name: string, count: number) => Array.from({ length: count }, (_, at) => `${name} ${at}`);
      expect(calls).toEqual([...named("pre-hook", preHooks), ...named("hook", hooks)]);
    },
  );

  test("backward hooks receive gradients of arguments and results, and are called once per pass", () => {
    const [layer, input] = [linear(), x(4, 3)];
    const expected = numbers(grad(layer.forward(input).square().sum(), input)[0])!;
    const calls: (readonly (number[] | null)[])[] = [];
    const remove = layer.registerFullBackwardHook((module, gradInputs, gradOutputs) => {
      expect(module).toBe(layer);
      calls.push([...gradInputs, ...gradOutputs].map(numbers));
      return undefined;
    });
    const output = layer.forward(input);
    output.square().sum().backward();
    const twice = numbers(output)!.map((value) => 2 * value);
    expect(calls).toEqual([[expected, twice]]);
    expect(numbers(input.grad)).toEqual(expected);
    expect(layer.weight.grad?.shape).toEqual([2, 3]);
    remove();
    layer.forward(input).sum().backward();
    expect(calls).toHaveLength(1);
  });

  test("backward hooks replace gradients, before and after the module's backward", () => {
    const [layer, input] = [linear(), x(4, 3)];
    const plain = numbers(grad(layer.forward(input).sum(), input)[0])!;
    layer.registerFullBackwardPreHook((_, [gradient]) => [gradient!.mul(4)]);
    layer.registerFullBackwardHook((_, [gradient]) => [gradient!.mul(0.5)]);
    layer.registerFullBackwardHook((_, [gradient]) => [gradient!.mul(8)]);
    layer.forward(input).sum().backward();
    expect(numbers(input.grad)).toEqual(plain.map((value) => 16 * value));
    expect(numbers(layer.bias!.grad)).toEqual([16, 16]); // 4 rows, each 4 times
  });

  test("backward hooks receive null where there is no gradient, and the gradients of results in objects", () => {
    const lstm = new nn.LSTM(2, 3, seeded());
    const seen: (readonly (readonly number[] | null)[])[] = [];
    lstm.registerFullBackwardHook((_, gradInputs, gradOutputs) => {
      seen.push([...gradInputs, ...gradOutputs].map((own) => own?.shape ?? null));
      return undefined;
    });
    const { output } = lstm.forward(zeros([4, 1, 2]));
    output.sum().backward();
    expect(seen).toEqual([[null, [4, 1, 3], null, null]]);
  });

  test("backward hooks see each use of a module, from the last to the first, and gradients of gradients", () => {
    const layer = new nn.Tanh();
    const order: number[] = [];
    layer.registerFullBackwardHook((_, _inputs, [gradient]): undefined => void order.push(Number(gradient!.item())));
    const input = tensor([0.5], { dtype: "float64", requiresGrad: true });
    const [first] = grad(layer.forward(layer.forward(input)), input, { createGraph: true });
    const inner = 1 - Math.tanh(Math.tanh(0.5)) ** 2;
    expect(order.splice(0)).toEqual([1, expect.closeTo(inner, 12)]);
    const [t, u] = [Math.tanh(0.5), Math.tanh(Math.tanh(0.5))];
    const [dt, du] = [1 - t * t, 1 - u * u];
    const second = du * -2 * t * dt + -2 * u * du * dt * dt;
    expect(grad(first, input)[0].item()).toBeCloseTo(second, 12);
  });

  test("gradients that a hook keeps outlive the pass and a tidy", () => {
    const layer = linear();
    const kept: Tensor[] = [];
    layer.registerFullBackwardHook((_, gradInputs, gradOutputs): undefined => {
      kept.push(...[...gradInputs, ...gradOutputs].filter((own) => own !== null));
    });
    tidy(() => layer.forward(x(2, 3).mul(2)).sum().backward());
    expect(kept.map((own) => numbers(own)!.length)).toEqual([6, 4]);
  });
});

test("mistakes in hooks throw typed errors", () => {
  const layer = linear();
  for (const register of ["registerForwardHook", "registerForwardPreHook", "registerFullBackwardHook"] as const)
    expect(() => layer[register](3 as never)).toThrow(`[${register}] expected hook to be a function, got 3`);
  const remove = layer.registerForwardPreHook((() => 3) as never);
  expect(() => layer.forward(x(1, 3))).toThrow(ArgumentError);
  remove();
  layer.registerFullBackwardHook(() => []);
  expect(() => layer.forward(x(1, 3)).sum().backward()).toThrow("to return 1 gradients or nothing, got []");
});
