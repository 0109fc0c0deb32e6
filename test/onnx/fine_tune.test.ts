/** Checks gradients of trained models by finite differences, if the packages of the examples are downloaded. */
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { arange, io, manualSeed, noGrad, rand, randn, Tensor, tensor, withBackend } from "../../src/index.ts";
import type { Value } from "../../src/onnx/call.ts";

const packages = join(packageRoot, "build", "packages");

interface Trained {
  readonly path: string;
  readonly inputs: () => Readonly<Record<string, Tensor>>;
}

/** A speech detector, a file type classifier, and a text direction classifier. */
const models: Readonly<Record<string, Trained>> = {
  silero: {
    path: "silero-vad==6.2.3/silero_vad/data/silero_vad_op18_ifless.onnx",
    inputs: () => ({
      input: randn([1, 576]).mul(0.1),
      sr: tensor(16_000n, { dtype: "int64" }),
      state: randn([2, 1, 128]).mul(0.1),
    }),
  },
  magika: {
    path: "magika==1.0.3/magika/models/standard_v3_3/model.onnx",
    inputs: () => ({ bytes: rand([1, 2048]).mul(200).to("int32") }),
  },
  direction: {
    path: "rapidocr-onnxruntime==1.4.4/rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
    inputs: () => ({ x: randn([1, 3, 48, 64]) }),
  },
};

/** Factors between −1 and 1. */
const wave = (count: number): Tensor => arange(1, count + 1, { dtype: "float64" }).sin();

/** Small enough that second-order terms are negligible, and large enough for the precision of float64. */
const STEP = 1e-7;

for (const [name, { path, inputs }] of Object.entries(models)) {
  const file = join(packages, path);
  test.skipIf(!existsSync(file))(`${name}: gradients of all weights are right along a direction`, async () => {
    manualSeed(5);
    const model = await io.loadOnnx(file, { dtype: "float64" });
    const given = inputs();
    await withBackend("cpu", () => {
      /** Without the logarithm, probabilities near 0 and 1 would hide differences. */
      const loss = (): Tensor =>
        Object.values(model.forward(given) as Record<string, Value>)
          .flatMap((x) => (x instanceof Tensor ? [x.add(1.5).log().reshape([-1]).dot(wave(x.size))] : []))
          .reduce((a, b) => a.add(b));
      loss().backward();
      const used = [...model.parameters()].filter((weight) => weight.grad);
      expect(used.length).toBeGreaterThan(5);
      const directions = used.map((weight) =>
        randn(weight.shape, { dtype: "float64" }).mul(weight.abs().mean().item()),
      );
      const slope = used.reduce(
        (sum, weight, at) => sum + (weight.grad!.mul(directions[at]).sum().item() as number),
        0,
      );
      const at = (step: number) =>
        noGrad(() => {
          for (const [index, weight] of used.entries()) weight.add_(directions[index].mul(step));
          const value = loss().item() as number;
          for (const [index, weight] of used.entries()) weight.sub_(directions[index].mul(step));
          return value;
        });
      const expected = (at(STEP) - at(-STEP)) / (2 * STEP);
      expect(Math.abs(slope - expected)).toBeLessThan(1e-4 * Math.abs(expected) + 1e-7);
    });
  });
}
