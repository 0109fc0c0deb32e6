/** Modules written as ONNX and read again: the graph gives the module's results, for other sizes too. */
import { describe, expect, test } from "bun:test";
import * as library from "../../src/index.ts";
import { ArgumentError, io, manualSeed, nn, noGrad, randn, Tensor, withBackend } from "../../src/index.ts";
import { repeats } from "../support/repeats.ts";
import { axesOf, cases, of } from "./written.ts";

function differenceOf(actual: Tensor, expected: Tensor): number {
  expect(actual.describe()).toBe(expected.describe());
  const [a, b] = [actual, expected].map((x) => Array.from(x.dataSync() as ArrayLike<number>, Number));
  const most = Math.max(1, ...b.map(Math.abs));
  return Math.max(0, ...a.map((value, at) => (Object.is(value, b[at]) ? 0 : Math.abs(value - b[at])))) / most;
}

for (const [name, item] of Object.entries(cases))
  test(name, () =>
    withBackend("cpu", async () => {
      manualSeed(4);
      const module = item.module();
      const example = item.inputs(2);
      const model = await io.loadOnnx(await io.saveOnnx(module as never, example, { axes: axesOf(item, example) }));
      module.eval();
      for (let n = 1; n <= repeats({ usual: 2, all: 7 }); n++) {
        const given = item.inputs(2 * n - 1);
        const result = noGrad(() => module.forward(...Object.values(given)));
        const results = await model.run(given);
        const expected = result instanceof Tensor ? { output: result } : (result as Record<string, Tensor | undefined>);
        for (const [at, value] of Object.entries(expected)) {
          const actual = results[Array.isArray(expected) ? `output_${at}` : at] as Tensor;
          if (value) expect(differenceOf(actual, value)).toBeLessThan(2e-6);
        }
      }
    }),
  );

describe("a saved ONNX model", () => {
  test("the file has the module's weights under their names, and the names of inputs, outputs and sizes", async () => {
    const module = new nn.Sequential(new nn.Linear(3, 2), new nn.ReLU()).train();
    const bytes = await io.saveOnnx(module, { row: randn([2, 3]) }, { axes: { row: { 0: "batch" } } });
    const model = await io.loadOnnx(bytes);
    expect(model.inputs).toEqual([{ name: "row", type: "float", shape: ["batch", 3] }]);
    expect(model.outputs).toEqual([{ name: "output", type: "float", shape: ["batch", 2] }]);
    expect([...model.weights.get("0.weight")!.dataSync()]).toEqual([...module.stateDict()["0.weight"].dataSync()]);
    expect(module.modules().every(({ training }) => training)).toBe(true);
  });

  test("the file has fixed sizes without names of axes", async () => {
    const model = await io.loadOnnx(await io.saveOnnx(new nn.Flatten(), { x: randn([2, 3, 4]) }));
    expect(model.outputs[0].shape).toEqual([2, 12]);
  });
});

const errorOf = (promise: Promise<unknown>): Promise<ArgumentError> =>
  promise.then(
    () => expect.unreachable(),
    (error: ArgumentError) => error,
  );

describe("rejects", () => {
  test("all operations that can't be written are named at once", async () => {
    const module = of((x) => library.nextafter(library.linalg.inv(x), x));
    const error = await errorOf(io.saveOnnx(module as never, { x: randn([3, 3]) }));
    expect(error).toBeInstanceOf(ArgumentError);
    expect(error.code).toBe("unsupported");
    expect(error.message).toContain("nextafter; solve");
  });

  test("random numbers, and constants that depend on a size that varies, are rejected", async () => {
    const noise = of((x) => x.add(randn(x.shape)));
    expect((await errorOf(io.saveOnnx(noise as never, { x: randn([3]) }))).message).toContain("random numbers");
    const places = of((x) => x.add(library.arange(x.shape[0])));
    const saved = io.saveOnnx(places as never, { x: randn([3]) }, { axes: { x: { 0: "n" } } });
    expect((await errorOf(saved)).message).toContain("depends on a size that varies");
  });

  test("axes that the example does not have are rejected", async () => {
    const saved = io.saveOnnx(new nn.ReLU(), { x: randn([3]) }, { axes: { x: { 1: "n" } } });
    expect((await errorOf(saved)).code).toBe("unknownAxis");
  });

  test("results that are not tensors are rejected", async () => {
    const saved = io.saveOnnx(of((x) => x.shape) as never, { x: randn([3]) });
    expect((await errorOf(saved)).code).toBe("invalidResult");
  });
});
