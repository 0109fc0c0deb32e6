/** A line for every command of `orchard`, for the project that has the package. */
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";

export interface CommandLine {
  readonly words: readonly string[];
  /** Texts that standard output and standard error together must contain. */
  readonly says: RegExp;
  readonly exitCode?: number;
  /** The standard input of the command. */
  readonly input?: string;
}

const llama = join(packageRoot, "test", "fixtures", "decoders", "llama");
const tiny = ["--layers", "1", "--heads", "1", "--width", "32", "--context", "8", "--batch", "1", "--steps", "2"];

/**
 * The commands in the order in which they run, since later ones use files of earlier ones. `serve` has a separate test.
 *
 * @param model a folder with a model that chats
 */
export const commandLines = (model: string): Readonly<Record<string, CommandLine>> => ({
  doctor: { words: ["doctor"], says: /cpu/ },
  train: {
    words: ["train", "books", "--tokenizer", "bpe", "--vocabulary", "260", ...tiny, "--backend", "cpu", "--out", "run"],
    says: /loss/,
  },
  generate: { words: ["generate", "run", "--prompt", "It", "--tokens", "3", "--seed", "1"], says: /^It/m },
  quantize: { words: ["quantize", "run", "--format", "q8_0", "--out", "run.gguf"], says: /run\.gguf/ },
  merge: { words: ["merge", llama, join(llama, "adapter"), "--out", "merged"], says: /merged/ },
  chat: { words: ["chat", model, "--tokens", "3", "--temperature", "0"], input: "Hello\n", says: /\S/ },
  embed: { words: ["embed", "nothing.txt", "--model", llama, "--out", "x.npy"], says: /nothing\.txt/, exitCode: 1 },
  transcribe: { words: ["transcribe", "nothing.wav", "--model", "nothing"], says: /nothing/, exitCode: 1 },
  translate: { words: ["translate", "nothing", "a text"], says: /nothing/, exitCode: 1 },
  onnx: { words: ["onnx", "nothing.onnx"], says: /nothing\.onnx/, exitCode: 1 },
  pull: { words: ["pull", "one/model"], says: /HF_ENDPOINT|127\.0\.0\.1/, exitCode: 1 },
  tune: { words: ["tune", "--reset"], says: /crossovers/ },
  metal: { words: ["metal", "check", "nothing.metal"], says: /nothing\.metal/, exitCode: 1 },
  swift: { words: ["swift", "nothing.swift"], says: /nothing\.swift|Swift/, exitCode: 1 },
  toolchain: { words: ["toolchain", "--help"], says: /install/ },
});
