/** Files of ONNX models: tensors in other files, large tensors in the model's file, files above 2 GB. */
import { expect, test } from "bun:test";
import { closeSync, ftruncateSync, mkdirSync, openSync, writeFileSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import { cpuLibrary } from "../../src/backend/cpu/loader.ts";
import { cpuStatistics } from "../../src/backend/cpu/report.ts";
import { withBackend } from "../../src/backend/policy.ts";
import { io, resetPeakMemory, type Tensor, tensor } from "../../src/index.ts";
import { TensorFile } from "../../src/io/tensor_file.ts";
import { RANGE_FIELD, readOutline } from "../../src/onnx/outline.ts";
import { readModelProto } from "../../src/onnx/schema.ts";
import { Random } from "../ops/samples.ts";
import { testFolder } from "../support/folder.ts";
import { readNodeCases } from "./cases.ts";
import { firstDifference } from "./compare.ts";
import { externalized } from "./external.ts";
import {
  bytes,
  type Field,
  float32,
  graph,
  initializer,
  message,
  model,
  node,
  tensorInput,
  text,
  varint,
} from "./write.ts";

const folder = testFolder("onnx-files");

test("random graphs and nodes with tensors in other files compute what onnxruntime does", async () => {
  const random = new Random(40);
  let moved = 0;
  const failures: string[] = [];
  for (const each of [...readNodeCases("graphs"), ...readNodeCases("versions").filter((_, at) => at % 8 === 0)]) {
    const { model, files, count } = externalized(each.model, random);
    moved += count;
    const path = folder.file(each.name, "model.onnx");
    for (const [name, content] of [["model.onnx", model] as const, ...files]) {
      mkdirSync(dirname(join(dirname(path), name)), { recursive: true });
      writeFileSync(join(dirname(path), name), content);
    }
    const problem = await withBackend("cpu", () => firstDifference(each, path));
    if (problem !== undefined) failures.push(`${each.name}: ${problem}`);
  }
  expect(failures).toEqual([]);
  expect(moved).toBeGreaterThan(300);
});

/** A model that adds its tensors to x: initializers, constants, tensors in a branch and in a function. */
function scattered(sizes: readonly number[], random: Random): { content: Uint8Array; sum: number[] } {
  const rows = sizes.map((size) => Array.from({ length: size }, () => Math.fround(random.next())));
  const tensorOf = (number: number, name: string, values: readonly number[]): Field =>
    message(number, [varint(1, values.length), varint(2, 1), text(8, name), bytes(9, float32(values))]);
  const constant = (name: string, values: readonly number[], number = 1): Field =>
    message(number, [
      text(2, name),
      text(4, "Constant"),
      message(5, [text(1, "value"), tensorOf(5, "", values), varint(20, 4)]),
    ]);
  const totals = (values: readonly string[]) => values.map((name) => node("ReduceSum", [name], [`${name}_sum`]));
  const branch = message(6, [
    constant("inner", rows[2]),
    tensorOf(5, "stored", rows[3]),
    ...totals(["inner", "stored"]),
    node("Add", ["inner_sum", "stored_sum"], ["both"]),
    message(12, [text(1, "both")]),
  ]);
  const conditional = (name: string) => message(5, [text(1, name), branch, varint(20, 5)]);
  const choice = message(1, [
    text(1, "condition"),
    text(2, "chosen_sum"),
    text(4, "If"),
    conditional("then_branch"),
    conditional("else_branch"),
  ]);
  const truth = message(5, [varint(2, 9), text(8, "condition"), bytes(9, Uint8Array.of(1))]);
  const named = ["first", "second", "called"];
  const nodes = [
    constant("second", rows[1]),
    node("Held", [], ["called"], "own"),
    choice,
    ...totals(named),
    node("Sum", ["x", ...named.map((name) => `${name}_sum`), "chosen_sum"], ["y"]),
  ];
  const held = message(25, [
    text(1, "Held"),
    text(5, "z"),
    constant("z", rows[4], 7),
    message(9, [varint(2, 17)]),
    text(10, "own"),
  ]);
  const described = { inputs: [tensorInput("x", [1])], outputs: [tensorInput("y", [1])] };
  const content = graph({ nodes, initializers: [initializer("first", [sizes[0]], rows[0]), truth], ...described });
  return {
    content: Buffer.concat([model(content), held, message(8, [text(1, "own"), varint(2, 1)])]),
    sum: rows.flat(),
  };
}

test("large tensors are read from all places of a file", async () => {
  const random = new Random(41);
  const path = folder.file("scattered.onnx");
  for (let round = 0; round < 12; round++) {
    const sizes = Array.from({ length: 5 }, () => Math.floor(10 ** (1 + 3.5 * random.next())));
    const { content, sum } = scattered(sizes, random);
    writeFileSync(path, content);
    const expected = sum.reduce((total, value) => total + value, 0);
    for (const source of [path, content]) {
      const { y } = await (await io.loadOnnx(source)).run({ x: tensor([0]) });
      expect(Math.abs(((y as Tensor).item() as number) - expected)).toBeLessThan(1e-5 * expected);
    }
    const outline = readOutline(new TensorFile(path, "loadOnnx"));
    expect(outline.length).toBeLessThan(7 * 4096 + 2000); // a tensor in both branches, and four others
  }
});

test("a cut file with large tensors is rejected", async () => {
  const { content } = scattered([5000, 5000, 5000, 5000, 5000], new Random(42));
  const path = folder.file("cut.onnx");
  for (let at = 0; at < 40; at++) {
    writeFileSync(path, content.subarray(0, Math.floor((content.length * at) / 40)));
    await expect(io.loadOnnx(path)).rejects.toMatchObject({ name: "FileFormatError" });
  }
});

test("a file can't name bytes outside of itself", async () => {
  const range = (position: number, length: number) =>
    bytes(RANGE_FIELD, new Uint8Array(Float64Array.of(position, length).buffer));
  const forged = message(5, [varint(1, 4), varint(2, 1), text(8, "w"), range(0, 2 ** 20)]);
  const described = { inputs: [tensorInput("x", [4])], outputs: [tensorInput("y", [4])] };
  const content = model(graph({ nodes: [node("Add", ["x", "w"], ["y"])], initializers: [forged], ...described }));
  await expect(io.loadOnnx(content)).rejects.toThrow("its data is outside the file");
  writeFileSync(folder.file("forged.onnx"), content);
  await expect(io.loadOnnx(folder.file("forged.onnx"))).rejects.toThrow("its data is outside the file");
});

/** Writes a file of which only the given parts take space on the disk. */
function writeSparse(
  path: string,
  size: number,
  parts: readonly (readonly [position: number, content: Uint8Array])[],
): void {
  const file = openSync(path, "w");
  ftruncateSync(file, size);
  for (const [position, content] of parts) writeSync(file, content, 0, content.length, position);
  closeSync(file);
}

/** Returns the key and the length of a field whose content follows. */
const lengthPrefix = (number: number, length: number): number[] => {
  const key = varint(number, 0).slice(0, -1);
  key[0] += 2;
  return [...key, ...varint(0, length).subarray(1)];
};

test("external data above 2 GB is read", async () => {
  const path = folder.file("large", "model.onnx");
  mkdirSync(dirname(path));
  const position = 5 * 2 ** 30 + 4096;
  writeSparse(join(dirname(path), "model.onnx_data"), position + 16, [[position, float32([1, 2, 3, 4])]]);
  const entry = (key: string, value: string) => message(13, [text(1, key), text(2, value)]);
  const weight = message(5, [
    varint(1, 4),
    varint(2, 1),
    text(8, "w"),
    varint(14, 1),
    entry("location", "model.onnx_data"),
    entry("offset", `${position}`),
  ]);
  const described = { inputs: [tensorInput("x", [4])], outputs: [tensorInput("y", [4])] };
  writeFileSync(path, model(graph({ nodes: [node("Add", ["x", "w"], ["y"])], initializers: [weight], ...described })));
  const { y } = await (await io.loadOnnx(path)).run({ x: tensor([10, 20, 30, 40]) });
  expect((y as Tensor).toArray()).toEqual([11, 22, 33, 44]);
});

test("the structure of a model above 4 GB is read without its tensors", async () => {
  const path = folder.file("huge.onnx");
  const length = 3 * 2 ** 30;
  const tensorStart = (name: string) =>
    Buffer.concat([varint(1, length), varint(2, 3), text(8, name), Uint8Array.from(lengthPrefix(9, length))]);
  const names = ["a", "b"];
  const described = { inputs: [tensorInput("x", [4])], outputs: [tensorInput("y", [4])] };
  const rest = graph({ nodes: [node("Neg", ["x"], ["y"])], initializers: [], ...described });
  const inner = rest.subarray(2); // without the key and the length of one byte
  const parts: [number, Uint8Array][] = [];
  const tensorBytes = tensorStart("a").length + length;
  const graphBytes = names.length * (lengthPrefix(5, tensorBytes).length + tensorBytes) + inner.length;
  let at = 0;
  const write = (content: Uint8Array, gap = 0) => {
    parts.push([at, content]);
    at += content.length + gap;
  };
  write(Uint8Array.from([...varint(1, 8), ...lengthPrefix(7, graphBytes)]));
  for (const name of names) {
    write(Uint8Array.from(lengthPrefix(5, tensorBytes)));
    write(tensorStart(name), length);
  }
  write(inner);
  write(message(8, [text(1, ""), varint(2, 17)]));
  writeSparse(path, at, parts);
  const outline = readOutline(new TensorFile(path, "loadOnnx"));
  expect(outline.length).toBeLessThan(1000);
  const { graph: read, opsets } = await readModelProto(outline, path);
  expect(read!.initializers.map(({ name, range }) => [name, range!.length])).toEqual(
    names.map((name) => [name, length]),
  );
  expect([read!.nodes[0].operator, opsets[0].version]).toEqual(["Neg", 17]);
});

test("the first runs free blocks that would fill the cache", async () => {
  const steps = Array.from({ length: 24 }, (_, at) => at + 1);
  const counts = steps.map((each) =>
    message(5, [varint(1, 1), varint(2, 7), text(8, `count_${each}`), bytes(9, int64(64 * each))]),
  );
  const nodes = steps.flatMap((each) => [
    node("Tile", ["x", `count_${each}`], [`tiled_${each}`]),
    node("ReduceSum", [`tiled_${each}`], [`sum_${each}`]),
  ]);
  const content = model(
    graph({
      nodes: [
        ...nodes,
        node(
          "Sum",
          steps.map((each) => `sum_${each}`),
          ["y"],
        ),
      ],
      initializers: counts,
      inputs: [tensorInput("x", [1024])],
      outputs: [tensorInput("y", [1])],
    }),
  );
  await withBackend("cpu", async () => {
    const loaded = await io.loadOnnx(content);
    const { native } = cpuLibrary();
    native.orchard_cpu_trim();
    resetPeakMemory();
    for (let run = 0; run < 5; run++) {
      await loaded.run({ x: tensor(new Float32Array(1024)) });
      const { cachedBytes, peakBytes } = cpuStatistics(native);
      expect(cachedBytes).toBeLessThan(1.25 * peakBytes + 2 ** 21); // the sum of all sizes is 77 MB
    }
  });
});

const int64 = (value: number): Uint8Array => new Uint8Array(BigInt64Array.of(BigInt(value)).buffer);
