/** Written models in the standard's checker and in onnxruntime, where the Python of the fixtures is installed. */
import { expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onnxAlone, presentPython } from "../../scripts/fixtures/environment.ts";
import { io, manualSeed, noGrad, Tensor, withBackend } from "../../src/index.ts";
import { axesOf, cases } from "./written.ts";

const python = presentPython(onnxAlone);

const described = (tensor: Tensor) => ({
  data: Array.from(tensor.dataSync() as ArrayLike<number>, Number),
  dtype: tensor.dtype,
  shape: tensor.shape,
});

const describedAll = (tensors: Readonly<Record<string, Tensor | undefined>>) =>
  Object.fromEntries(Object.entries(tensors).flatMap(([name, x]) => (x ? [[name, described(x)]] : [])));

/** Writes a model, and the results of the module for another batch size. */
async function write(folder: string, name: string, item: (typeof cases)[string]): Promise<void> {
  manualSeed(4);
  const module = item.module();
  const example = item.inputs(2);
  const path = join(folder, `${name}.onnx`);
  await io.saveOnnx(module as never, example, { path, axes: axesOf(item, example) });
  const inputs = item.inputs(3);
  module.eval();
  const result = noGrad(() => module.forward(...Object.values(inputs)));
  const outputs = result instanceof Tensor ? { output: result } : (result as Record<string, Tensor | undefined>);
  const named = Array.isArray(outputs) ? Object.fromEntries(outputs.map((x, at) => [`output_${at}`, x])) : outputs;
  await Bun.write(
    join(folder, `${name}.json`),
    JSON.stringify({ inputs: describedAll(inputs), outputs: describedAll(named) }),
  );
}

test.skipIf(python === undefined)("onnxruntime computes what the modules do", async () => {
  const folder = await mkdtemp(join(tmpdir(), "orchard-onnx-"));
  try {
    await withBackend("cpu", async () => {
      for (const [name, item] of Object.entries(cases)) await write(folder, name, item);
    });
    const run = Bun.spawnSync([python!, join(import.meta.dir, "runtime.py"), folder]);
    expect(run.exitCode).toBe(0);
    const results = JSON.parse(run.stdout.toString()) as Record<string, readonly [number, string] | string>;
    expect(Object.keys(results).length).toBe(Object.keys(cases).length);
    const isRight = (result: readonly [number, string] | string) =>
      typeof result !== "string" && result[0] <= 1e-5 && result[1] === "onnxruntime";
    expect(Object.entries(results).filter(([, result]) => !isRight(result))).toEqual([]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
