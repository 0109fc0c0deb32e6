/**
 * GGUF files of further architectures, whose names and keys the package `gguf` wrote, compared with the logits of
 * `transformers`: scripts/fixtures/models/gguf_decoders.py.
 */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../../../src/core/paths.ts";
import { io, nn, noGrad, ones, tensor } from "../../../../src/index.ts";
import { furtherGguf } from "../../../../src/nn/models/loading/gguf.ts";
import { testFolder } from "../../../support/folder.ts";
import { errorOf, greedy } from "./oracle.ts";

const temporary = testFolder("gguf-further");
const folder = join(packageRoot, "test", "fixtures", "decoders", "gguf");
const models: readonly { arch: string; config: { model_type: string } }[] = JSON.parse(
  readFileSync(join(folder, "models.json"), "utf8"),
);
const answers = io.loadSafetensors(join(folder, "logits.safetensors"));

test("every architecture has files", () => {
  expect([...new Set(models.map(({ arch }) => arch))].toSorted()).toEqual(Object.keys(furtherGguf).toSorted());
});

describe.each([...models.entries()].map(([at, { arch, config }]) => [`${config.model_type} as ${arch}`, at] as const))(
  "models from GGUF: %s, file %d",
  (_, at) => {
    const isCausal = !["llama-embed", "gemma-embedding"].includes(models[at].arch);
    const [tokens, logits] = [answers[`${at}.tokens`], answers[`${at}.logits`]];

    test("logits equal those of transformers", async () => {
      const { model } = await nn.loadModel(join(folder, `${at}.gguf`), { dtype: "float32" });
      const got = noGrad(() => model.forward(tokens));
      expect(errorOf(got, logits)).toBeLessThan(1e-5);
      if (!isCausal) return;
      const [cached, whole] = [true, false].map((useCache) => greedy(model, tokens, 8, { useCache }));
      expect(cached).toEqual(whole);
    });
  },
);

test("blocks for multi-token prediction are ignored", async () => {
  const at = models.findIndex(({ arch }) => arch === "glm-dsa");
  using file = io.openGguf(join(folder, `${at}.gguf`));
  const count = Number(file.metadata["glm-dsa.block_count"]!.value);
  const path = temporary.file("nextn.gguf");
  const number = (value: number) => ({ type: "uint32", value }) as const;
  const metadata = {
    ...file.metadata,
    "glm-dsa.block_count": number(count + 1),
    "glm-dsa.nextn_predict_layers": number(1),
  };
  const tensors = { ...file.tensors(), [`blk.${count}.nextn.eh_proj.weight`]: ones([16, 32]) };
  await io.saveGguf(path, tensors, { metadata });
  const { model } = await nn.loadModel(path, { dtype: "float32" });
  expect(model.description.layers.length).toBe(count);
  const logits = noGrad(() => model.forward(answers[`${at}.tokens`]));
  expect(errorOf(logits, answers[`${at}.logits`])).toBeLessThan(1e-5);
});

test("in texts longer than GLM-5's number of chosen tokens, tokens attend to the chosen ones", async () => {
  const at = models.findIndex(({ arch }) => arch === "glm-dsa");
  using file = io.openGguf(join(folder, `${at}.gguf`));
  const whole = temporary.file("whole.gguf");
  const metadata = { ...file.metadata, "glm-dsa.attention.indexer.top_k": { type: "uint32", value: 64 } as const };
  await io.saveGguf(whole, file.tensors(), { metadata });
  const text = tensor([Array.from({ length: 40 }, (_, position) => (position * 7) % 11)], { dtype: "int32" });
  const [sparse, full] = await Promise.all(
    [join(folder, `${at}.gguf`), whole].map(async (path) => {
      const { model } = await nn.loadModel(path, { dtype: "float32" });
      return noGrad(() => model.forward(text));
    }),
  );
  const chosen = 32; // attention.indexer.top_k
  expect(errorOf(sparse.narrow(1, 0, chosen), full.narrow(1, 0, chosen))).toBeLessThan(1e-6);
  expect(errorOf(sparse.narrow(1, chosen + 1, 7), full.narrow(1, chosen + 1, 7))).toBeGreaterThan(1e-3);
});
