/** The GGUF files of which llama_cpp.json has what llama.cpp computes. */
import type { GgmlFormat } from "../../../src/quant/formats.ts";
import { type GgufName, ggufNames, writeGguf, writeWide } from "./gguf_of.ts";
import { answersOf, numbers } from "./oracle.ts";

/** One file. */
export interface GgufCase {
  readonly name: string;
  readonly prompt: GgufName;
  readonly format: GgmlFormat | "float32" | "float16";
  /** Whether the tokens that follow are compared, too. */
  readonly tokens: boolean;
  readonly write: (path: string) => Promise<void>;
}

const small = (["float32", "float16", "q8_0", "q4_0"] as const).flatMap((format) =>
  ggufNames.map(
    (name): GgufCase => ({
      ...{ name: `${name} ${format}`, prompt: name, format, tokens: format.startsWith("float") },
      write: (path) => writeGguf(name, path, format),
    }),
  ),
);
const wide = (["float32", "q4_K", "q6_K"] as const).map(
  (format): GgufCase => ({
    ...{ name: `wide ${format}`, prompt: "qwen2", format, tokens: format === "float32" },
    write: (path) => writeWide(path, format),
  }),
);
export const files: readonly GgufCase[] = [...small, ...wide];

/**
 * Twelve tokens. Of llama those of another model: llama.cpp rounds what it multiplies with float16 to float16 too, and
 * after llama's own rows two tokens are nearer to each other than that.
 */
export const promptOf = (name: GgufName): number[] =>
  numbers(answersOf(name === "llama" ? "qwen2" : name)["tokens"]!.narrow(0, 0, 1));
