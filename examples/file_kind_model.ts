/** Google's magika, which names the kind of a file from its first and last bytes. */
import { join } from "node:path";
import { io, type Tensor, tensor } from "../src/index.ts";
import { pythonPackage } from "./packages.ts";
import { numbersOf } from "./picture.ts";

interface Settings {
  readonly beg_size: number;
  readonly end_size: number;
  readonly block_size: number;
  readonly padding_token: number;
  readonly target_labels_space: readonly string[];
}

export interface Kinds {
  readonly model: io.OnnxModel;
  readonly settings: Settings;
  readonly labels: readonly string[];
}

/** Loads the model of the package magika on PyPI. */
export async function loadKinds(): Promise<Kinds> {
  const folder = join(pythonPackage("magika==1.0.3"), "magika", "models", "standard_v3_3");
  const settings: Settings = await Bun.file(join(folder, "config.min.json")).json();
  return { model: await io.loadOnnx(join(folder, "model.onnx")), settings, labels: settings.target_labels_space };
}

/** Returns the first and the last bytes without surrounding white space, which are magika's input. */
export function tokensOf(bytes: Uint8Array, settings: Settings): number[] {
  const { beg_size, end_size, block_size, padding_token } = settings;
  const isSpace = (byte: number) => byte === 32 || (byte >= 9 && byte <= 13);
  const start = bytes.slice(0, block_size);
  const end = bytes.slice(-block_size);
  const from = start.findIndex((byte) => !isSpace(byte));
  const to = end.findLastIndex((byte) => !isSpace(byte)) + 1;
  const first = Array.from(from < 0 ? [] : start.subarray(from, from + beg_size));
  const last = Array.from(end.subarray(Math.max(0, to - end_size), to));
  const padding = (length: number) => new Array<number>(length).fill(padding_token);
  return [...first, ...padding(beg_size - first.length), ...padding(end_size - last.length), ...last];
}

/** Returns the likeliest kind of a file. */
export async function kindOf(bytes: Uint8Array, { model, settings, labels }: Kinds) {
  const tokens = tokensOf(bytes, settings);
  const input = tensor(tokens, { shape: [1, tokens.length], dtype: "int32" });
  const [output] = Object.values(await model.run({ bytes: input }));
  const probabilities = numbersOf(output as Tensor);
  const probability = Math.max(...probabilities);
  return { kind: labels[probabilities.indexOf(probability)], probability };
}
