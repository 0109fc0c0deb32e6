/** The GGUF files whose results by llama.cpp are in llama_cpp.json. */
import { join } from "node:path";
import type { GgmlFormat } from "../../../../src/quant/formats.ts";
import { mergeModel } from "../../../../src/train/tuning/merge.ts";
import { type GgufName, ggufNames, type RopeScalingMetadata, type Value, writeGguf, writeWide } from "./gguf_of.ts";
import { type GgufRowName, ggufRows, writeGgufRow } from "./gguf_rows.ts";
import { answersOf, folderOf, numbers } from "./oracle.ts";

/** One file. */
export interface GgufCase {
  readonly name: string;
  readonly prompt: GgufName;
  readonly format: GgmlFormat | "float32" | "float16";
  /** Whether to compare the following tokens too. */
  readonly tokens: boolean;
  readonly write: (path: string) => Promise<void>;
}

const small = (["float32", "float16", "q8_0", "q4_0"] as const).flatMap((format) =>
  ggufNames.map(
    (name): GgufCase => ({
      name: `${name} ${format}`,
      prompt: name,
      format,
      tokens: format.startsWith("float"),
      write: (path) => writeGguf(name, path, format),
    }),
  ),
);
const wide = (["float32", "q4_K", "q6_K"] as const).map(
  (format): GgufCase => ({
    name: `wide ${format}`,
    prompt: "qwen2",
    format,
    tokens: format === "float32",
    write: (path) => writeWide(path, format),
  }),
);
const ropeOf = (type: string, others: Record<string, Value> = {}): RopeScalingMetadata => ({
  "llama.rope.scaling.type": { type: "string", value: type },
  "llama.rope.scaling.factor": { type: "float32", value: 3 },
  ...others,
});
const original = { "llama.rope.scaling.original_context_length": { type: "uint32", value: 16 } } as const;
const scaled = Object.entries({
  linear: ropeOf("linear"),
  yarn: ropeOf("yarn", original),
}).map(
  ([scaling, metadata]): GgufCase => ({
    name: `llama, ${scaling} float32`,
    prompt: "llama",
    format: "float32",
    tokens: true,
    write: (path) => writeGguf("llama", path, "float32", metadata),
  }),
);

/** The result of `orchard merge` for a file and PEFT's adapter. */
const merged = (["llama", "phi3", "gpt2"] as const).flatMap((name) =>
  (["float32", "float16", "q8_0"] as const).map(
    (format): GgufCase => ({
      name: `merged ${name} ${format}`,
      prompt: name,
      format,
      tokens: format !== "q8_0",
      async write(path) {
        const base = path.replace(/\.gguf$/, ".base.gguf");
        await writeGguf(name, base, format);
        await mergeModel(base, join(folderOf(name), "adapter"), path);
      },
    }),
  ),
);
const rows = Object.keys(ggufRows).map(
  (name): GgufCase => ({
    name: `${name} float32`,
    prompt: "qwen2",
    format: "float32",
    tokens: true,
    write: (path) => writeGgufRow(name as GgufRowName, path),
  }),
);
export const files: readonly GgufCase[] = [...small, ...wide, ...scaled, ...merged, ...rows];

/**
 * Twelve tokens. Llama uses another model's tokens, because after its own rows two tokens are closer to each other than
 * the error of llama.cpp, which also rounds the factors of float16 weights to float16.
 */
export const promptOf = (name: GgufName): number[] =>
  numbers(answersOf(name === "llama" ? "qwen2" : name)["tokens"].narrow(0, 0, 1));
