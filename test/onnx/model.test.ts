/** The interface of an ONNX model: inputs and outputs, errors, trainable weights, files of external data. */
import { describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { io, mseLoss, optim, type Tensor, tensor } from "../../src/index.ts";
import { operatorNames } from "../../src/onnx/operators/index.ts";
import { testFolder } from "../support/folder.ts";
import { type Field, float32, graph, initializer, message, model, node, tensorInput, text, varint } from "./write.ts";

const { path: folder } = testFolder("onnx");

/** y = x · weight + bias, with a size left open. */
const linear = (extra: readonly Field[] = []): Uint8Array =>
  model(
    graph({
      nodes: [node("Gemm", ["x", "weight", "bias"], ["y"])],
      initializers: [initializer("weight", [3, 2], [1, 2, 3, 4, 5, 6]), initializer("bias", [2], [10, 20])],
      inputs: [tensorInput("x", ["batch", 3])],
      outputs: [tensorInput("y", ["batch", 2])],
      extra,
    }),
  );

test("a model names its inputs and outputs, and computes", async () => {
  const loaded = await io.loadOnnx(linear());
  expect(loaded.inputs).toEqual([{ name: "x", type: "float", shape: ["batch", 3] }]);
  expect(loaded.outputs).toEqual([{ name: "y", type: "float", shape: ["batch", 2] }]);
  const { y } = await loaded.run({ x: tensor([[1, 0, 2]]) });
  expect((y as Tensor).toArray()).toEqual([[21, 34]]);
  expect(loaded.summary()).toBe(
    [
      "inputs",
      "  x: float[batch, 3]",
      "outputs",
      "  y: float[batch, 2]",
      "operators: Gemm 1",
      "weights: 2 tensors, 0.0 MB",
    ].join("\n"),
  );
});

test("weights are parameters under their names, and train", async () => {
  const loaded = await io.loadOnnx(linear());
  expect([...loaded.namedParameters().keys()]).toEqual(["weights.weight", "weights.bias"]);
  const optimizer = new optim.SGD(loaded.parameters(), { lr: 0.05 });
  const [x, target] = [tensor([[1, 0, 2]]), tensor([[0, 0]])];
  const losses: number[] = [];
  for (let step = 0; step < 20; step++) {
    const loss = mseLoss(loaded.forward({ x })["y"] as Tensor<"float32">, target);
    losses.push(loss.item());
    optimizer.zeroGrad();
    loss.backward();
    optimizer.step();
  }
  expect(losses.at(-1)!).toBeLessThan(losses[0] / 100);
});

test("scales of quantization do not train", async () => {
  const names = ["aScale", "aZero", "b", "bScale", "bZero", "yScale", "yZero"];
  const quantized = model(
    graph({
      nodes: [node("QLinearMatMul", ["x", ...names], ["y"])],
      initializers: names.map((name) => initializer(name, [2], [1, 2])),
      inputs: [tensorInput("x", [2, 2])],
      outputs: [tensorInput("y", [2, 2])],
    }),
  );
  const { weights } = await io.loadOnnx(quantized);
  const trained = [...weights].filter(([, x]) => x.requiresGrad).map(([name]) => name);
  expect(trained.filter((name) => name.includes("Scale"))).toEqual([]);
  expect(trained).toContain("b");
});

test("another tensor in place of a weight is used by the next run", async () => {
  const loaded = await io.loadOnnx(linear());
  const x = tensor([[1, 2, 3]]);
  const run = async () => ((await loaded.run({ x })) as { y: Tensor }).y.toArray();
  const names = [...loaded.weights.keys()];
  expect(names.length).toBeGreaterThan(1);
  for (let round = 0; round < 3; round++) await run(); // after these runs, the model keeps a plan
  for (const name of names) {
    const before = await run();
    const weight = loaded.weights.get(name)!;
    loaded.weights.set(name, weight.detach().add(1));
    const after = await run();
    expect([name, after]).not.toEqual([name, before]);
    loaded.weights.set(name, weight);
    expect(await run()).toEqual(before);
  }
});

describe("rejects", () => {
  test("missing and unknown inputs are rejected by name", async () => {
    const loaded = await io.loadOnnx(linear());
    await expect(loaded.run({})).rejects.toThrow('the input "x" is missing; the inputs are "x"');
    await expect(loaded.run({ X: tensor([[1, 2, 3]]) })).rejects.toThrow('there is no input "X"; did you mean "x"?');
  });

  test("results that can't be computed are an error that names the node", async () => {
    const loaded = await io.loadOnnx(linear());
    const failure = loaded.run({ x: tensor([[1, 2]]) });
    await expect(failure).rejects.toMatchObject({ name: "OnnxError", operator: "Gemm", node: "y" });
  });

  test("all operators that are not supported are named at once", async () => {
    const unknown = model(
      graph({
        nodes: [node("Nonsense", ["x"], ["y"]), node("Other", ["y"], ["z"], "com.example")],
        initializers: [],
        inputs: [tensorInput("x", [1])],
        outputs: [tensorInput("z", [1])],
      }),
    );
    await expect(io.loadOnnx(unknown)).rejects.toThrow("its operators Nonsense, com.example.Other are not supported");
  });

  test.each([
    ["a cycle", [node("Neg", ["b"], ["a"]), node("Neg", ["a"], ["b"])], "cycle"],
    ["a value that no node computes", [node("Neg", ["nowhere"], ["b"])], 'no node computes the value "nowhere"'],
    ["a value of two nodes", [node("Neg", ["x"], ["b"]), node("Abs", ["x"], ["b"])], "two nodes compute"],
  ])("%s is rejected", async (_, nodes, message) => {
    const bytes = model(
      graph({ nodes, initializers: [], inputs: [tensorInput("x", [1])], outputs: [tensorInput("b", [1])] }),
    );
    await expect(io.loadOnnx(bytes)).rejects.toThrow(message);
  });
});

describe("external data of ONNX models is read", () => {
  /** A tensor whose bytes are in another file. */
  const external = (location: string, offset: number, length: number): Field => {
    const entry = (key: string, value: string) => message(13, [text(1, key), text(2, value)]);
    return message(5, [
      varint(1, 4),
      varint(2, 1),
      text(8, "weight"),
      varint(14, 1),
      entry("location", location),
      entry("offset", `${offset}`),
      entry("length", `${length}`),
    ]);
  };
  const doubled = (field: Field): Uint8Array =>
    model(
      graph({
        nodes: [node("Add", ["x", "weight"], ["y"])],
        initializers: [field],
        inputs: [tensorInput("x", [4])],
        outputs: [tensorInput("y", [4])],
      }),
    );

  test("external data is read from the model's folder at any offset", async () => {
    const property = fc.asyncProperty(fc.integer({ min: 0, max: 40 }), async (offset) => {
      const place = join(folder, `at-${offset}`);
      mkdirSync(place, { recursive: true });
      writeFileSync(join(place, "weights.bin"), Buffer.concat([Buffer.alloc(offset, 7), float32([1, 2, 3, 4])]));
      writeFileSync(join(place, "model.onnx"), doubled(external("weights.bin", offset, 16)));
      const { y } = await (await io.loadOnnx(join(place, "model.onnx"))).run({ x: tensor([10, 20, 30, 40]) });
      expect((y as Tensor).toArray()).toEqual([11, 22, 33, 44]);
    });
    await fc.assert(property, { numRuns: 8, seed: 1 });
  });

  test.each([
    ["../weights.bin", 0, 16, "outside the model's folder"],
    ["weights.bin", 8, 16, "its data is bytes 8 to 24 of weights.bin, which has 16"],
    ["weights.bin", 0, 12, "expected 16 bytes for shape [4], got 12"],
    ["nowhere.bin", 0, 16, "no such file or folder"],
  ])("external data at %s from %d for %d bytes is rejected", async (location, offset, length, message) => {
    writeFileSync(join(folder, "weights.bin"), float32([1, 2, 3, 4]));
    const path = join(folder, "model.onnx");
    writeFileSync(path, doubled(external(location, offset, length)));
    await expect(io.loadOnnx(path)).rejects.toThrow(message);
  });
});

test("docs/onnx.md lists the operators", async () => {
  const page = await Bun.file(join(import.meta.dir, "..", "..", "docs", "onnx.md")).text();
  const listed = (heading: string): string[] =>
    [...(page.split(`### ${heading}\n`)[1]?.split(/^#/m)[0] ?? "").matchAll(/`(\w+)`/g)].map(([, name]) => name);
  expect(listed("Operators of the standard").sort()).toEqual(operatorNames());
  for (const domain of ["ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training", "com.microsoft"])
    expect(listed(`Operators of ${domain}`).sort()).toEqual(operatorNames(domain));
});
