/** Complex tensors in files, and complex parameters in optimizers. */
import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { io, matmul, optim, randn, sub, type Tensor, tensor, transpose, viewAsComplex } from "../../src/index.ts";
import fixtures from "../fixtures/functional/pytorch.json";
import { difference } from "../transforms/samples.ts";

function inFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "orchard-complex-"));
  return body(folder).finally(() => rmSync(folder, { recursive: true }));
}

describe("complex tensors are saved and loaded", () => {
  test("complex tensors round-trip as safetensors and as a checkpoint, between other dtypes", () =>
    inFolder(async (folder) => {
      const z = randn([3, 5], { dtype: "complex64" });
      const state = { z, turned: transpose(z, 0, 1), one: tensor({ re: 1, im: -2 }), x: randn([3]) };
      await io.saveSafetensors(join(folder, "a.safetensors"), state);
      const loaded = io.loadSafetensors(join(folder, "a.safetensors"));
      for (const [name, value] of Object.entries(state)) {
        expect(loaded[name].dtype).toBe(value.dtype);
        expect(loaded[name].toArray()).toEqual(value.toArray());
      }
      await io.saveCheckpoint(join(folder, "run"), { model: state, step: 3 });
      const { model } = (await io.loadCheckpoint(join(folder, "run"))) as unknown as { model: typeof state };
      expect(model.z.toArray()).toEqual(z.toArray());
    }));

  test("complex tensors round-trip as .npy, in both byte orders", () =>
    inFolder(async (folder) => {
      for (const dtype of ["complex64", "complex128"] as const) {
        const z = transpose(randn([2, 3], { dtype }), 0, 1);
        const path = join(folder, `${dtype}.npy`);
        await io.saveNpy(path, z);
        const back = io.loadNpy(path);
        expect([back.dtype, back.toArray()]).toEqual([dtype, z.toArray()]);
        const bytes = new Uint8Array(await Bun.file(path).arrayBuffer());
        const size = dtype === "complex64" ? 4 : 8;
        const start = bytes.byteLength - 12 * size;
        for (let at = start; at < bytes.byteLength; at += size) bytes.subarray(at, at + size).reverse();
        bytes[bytes.indexOf("<".charCodeAt(0))] = ">".charCodeAt(0);
        await Bun.write(path, bytes);
        expect(io.loadNpy(path).toArray()).toEqual(z.toArray());
      }
    }));
});

describe("optimizers update complex parameters as PyTorch does", () => {
  const make: Readonly<Record<string, (w: Tensor) => optim.Optimizer<{ lr: number }>>> = {
    sgd: (w) => new optim.SGD([w], { lr: 0.1, momentum: 0.9 }) as never,
    adam: (w) => new optim.Adam([w], { lr: 0.05 }) as never,
    adamw: (w) => new optim.AdamW([w], { lr: 0.05, weightDecay: 0.1 }) as never,
  };
  test.each(fixtures.optimizers)("$name updates complex parameters as in PyTorch", ({ name, w, x, y, result }) => {
    const complex = (data: readonly number[], shape: readonly number[]): Tensor =>
      viewAsComplex(tensor([...data], { dtype: "float64", shape: [...shape, 2] })) as Tensor;
    const [weight, given, wanted] = [complex(w, [3, 2]), complex(x, [4, 3]), complex(y, [4, 2])];
    weight.requiresGrad = true;
    const optimizer = make[name](weight);
    for (let step = 0; step < 5; step++) {
      optimizer.zeroGrad();
      sub(matmul(given, weight), wanted).abs().square().mean().backward();
      optim.clipGradNorm([weight], 1.5);
      optimizer.step();
    }
    expect(difference(weight.dataSync() as Float64Array, result)).toBeLessThan(1e-10);
    const state = optimizer.stateDict();
    optimizer.loadStateDict(state);
    expect(Object.values(state.tensors).every((each) => each.dtype === "float64")).toBe(true);
  });
});
