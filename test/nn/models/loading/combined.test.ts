/**
 * Configs of every decoder with several changes at once, as people and as `transformers` write them, with weights of
 * three dtypes in one or two files. See scripts/fixtures/models/combined.py.
 */
import { expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../../../src/core/paths.ts";
import { io, nn, noGrad, type Tensor } from "../../../../src/index.ts";
import type { Decoder } from "../../../../src/nn/models/decoder/decoder.ts";
import { type ArchitectureName, rowOf } from "../../../../src/nn/models/loading/architectures.ts";
import { testFolder } from "../../../support/folder.ts";
import { hashed } from "../weights.ts";
import { errorOf, greedy, numbers } from "./oracle.ts";

interface Model {
  readonly name: ArchitectureName;
  readonly config: Readonly<Record<string, unknown>>;
  readonly shapes: Readonly<Record<string, number[]>>;
  readonly dtype: "float32" | "bfloat16" | "float16";
  readonly files: 1 | 2;
}

const fixture = join(packageRoot, "test", "fixtures", "decoders", "combined");
const { models }: { models: Record<string, Model> } = JSON.parse(readFileSync(`${fixture}.json`, "utf8"));
const answers = io.loadSafetensors(`${fixture}.safetensors`);
const folder = testFolder("combined");

async function write(path: string, { name, config, shapes, dtype, files }: Model): Promise<void> {
  mkdirSync(path);
  writeFileSync(join(path, "config.json"), JSON.stringify(config));
  const isFromOne = rowOf(name).normsFromOne === true;
  const state = Object.entries(shapes).map(([key, shape]) => {
    const offset = shape.length === 1 && key.endsWith("weight") && !isFromOne ? 1 : 0;
    return [key, hashed(key, shape, offset).to(dtype)] as const;
  });
  const save = (file: string, part: readonly (readonly [string, Tensor])[]) =>
    io.saveSafetensors(join(path, file), Object.fromEntries(part));
  if (files === 1) return await save("model.safetensors", state);
  const half = Math.ceil(state.length / 2);
  const parts = { "model-00001-of-00002.safetensors": state.slice(0, half) };
  const all = { ...parts, "model-00002-of-00002.safetensors": state.slice(half) };
  for (const [file, part] of Object.entries(all)) await save(file, part);
  const places = Object.entries(all).flatMap(([file, part]) => part.map(([key]) => [key, file]));
  const index = { metadata: { total_size: 1 }, weight_map: Object.fromEntries(places) };
  writeFileSync(join(path, "model.safetensors.index.json"), JSON.stringify(index));
}

/** Errors for an odd number of rotated elements, which `transformers` broadcasts. */
const isBroadcast = ({ message }: Error): boolean =>
  message.includes("expected an even number of elements") || message.includes("one for each pair of elements");

test.each(Object.entries(models).map(([at, model]) => [`${model.name} ${at}`, at, model] as const))(
  "%s: configs with several changed keys give the logits of transformers, or an error that names a key",
  async (title, at, model) => {
    const path = folder.file(title.replace(" ", "."));
    await write(path, model);
    try {
      const { model: loaded } = await nn.loadModel(path, { dtype: "float32" });
      const tokens = answers["tokens"].remainder(loaded.vocabularySize).to("int32");
      const logits = noGrad(() => loaded.forward(tokens)).narrow(1, -2, 2);
      expect(errorOf(logits, answers[`${at}.logits`])).toBeLessThan(1e-5);
      const following = answers[`${at}.greedy`];
      const isCausal = !(loaded as Decoder).description.layers.some(({ attention }) => attention.bidirectional);
      if (!following || !isCausal) return;
      expect(greedy(loaded, tokens.narrow(1, 0, 12), 8, { useCache: true })).toEqual([numbers(following)]);
    } catch (error) {
      if (!isBroadcast(error as Error)) throw error;
    }
  },
);
