/**
 * Pages of mapped weights are in memory before they are used, according to Linux's counts for the process's mappings.
 */
import { expect, test } from "bun:test";
import { readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { Generator, io, nn, setBackend } from "../../../../src/index.ts";
import { testFolder } from "../../../support/folder.ts";
import { waitFor } from "../../../support/wait.ts";

const folder = testFolder("read-ahead");
const sizes = { vocabularySize: 512, contextLength: 64, layers: 3, heads: 4, width: 128, hidden: 512 } as const;
const config = {
  model_type: "llama",
  vocab_size: 512,
  max_position_embeddings: 64,
  hidden_size: 128,
  num_hidden_layers: 3,
  intermediate_size: 512,
  num_attention_heads: 4,
  num_key_value_heads: 4,
  rms_norm_eps: 1e-5,
  rope_theta: 1e4,
  hidden_act: "silu",
  tie_word_embeddings: false,
  torch_dtype: "float32",
};

async function modelFolder(name: string): Promise<string> {
  const path = folder.file(name);
  await Bun.write(join(path, "config.json"), JSON.stringify(config));
  const model = new nn.Llama({ ...sizes, generator: new Generator(3) });
  await io.saveSafetensors(join(path, "model.safetensors"), model.huggingFaceState());
  return path;
}

/** Kilobytes of a file's mappings: in total, and in the process's page table. */
function mapped(path: string): { readonly all: number; readonly resident: number } {
  const maps = readFileSync("/proc/self/smaps", "utf8").split(/^(?=[0-9a-f]+-[0-9a-f]+ )/m);
  const own = maps.filter((map) => map.slice(0, map.indexOf("\n")).endsWith(realpathSync(path)));
  const sum = (field: string) =>
    own.reduce((total, map) => total + Number(new RegExp(`^${field}: +(\\d+) kB`, "m").exec(map)![1]), 0);
  return { all: sum("Size"), resident: sum("Rss") };
}

const isLinux = process.platform === "linux";

test.skipIf(!isLinux)("mapped weights are read ahead, except for rows of embeddings", async () => {
  setBackend("cpu");
  const path = await modelFolder("model");
  const { model, report } = await nn.loadModel(path);
  const embedding = (512 * 128 * 4) / 1024;
  const file = join(path, "model.safetensors");
  expect(report.mappedBytes / 1024).toBeGreaterThan(4 * embedding);
  // a mapping begins at a whole page, before its tensor
  const wanted = report.mappedBytes / 1024 - embedding;
  const isThere = () => mapped(file).resident >= wanted;
  await waitFor(`${wanted} KB of the weights in memory`, isThere, { state: () => mapped(file) });
  expect(mapped(file).all - mapped(file).resident).toBeGreaterThan(embedding / 2);
  expect(model.contextLength).toBe(64);
});
