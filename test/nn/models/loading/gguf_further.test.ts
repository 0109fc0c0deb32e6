/**
 * GGUF files of further architectures, whose names and keys the package `gguf` wrote, compared with the logits of
 * `transformers`: scripts/fixtures/models/gguf_decoders.py.
 */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../../../src/core/paths.ts";
import { io, nn, noGrad } from "../../../../src/index.ts";
import { furtherGguf } from "../../../../src/nn/models/loading/gguf.ts";
import { errorOf, greedy } from "./oracle.ts";

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
