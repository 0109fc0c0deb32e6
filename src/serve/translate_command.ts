/** The implementation of `orchard translate`. */
import { createInterface } from "node:readline";
import type { BackendName } from "../backend/names.ts";
import { setBackend } from "../backend/policy.ts";
import { ArgumentError, OrchardError } from "../core/errors.ts";
import { translate } from "../nn/generation/texts/text_to_text.ts";
import { EncoderDecoder } from "../nn/models/encoder_decoder/encoder_decoder.ts";
import { loadModel } from "../nn/models/loading/load_model.ts";
import type { LoadableModel } from "../nn/models/loading/opened.ts";
import type { GgmlFormat } from "../quant/formats.ts";

export interface TranslateFlags {
  readonly from?: string;
  readonly to?: string;
  readonly beams?: number;
  readonly tokens?: number;
  readonly quantize?: GgmlFormat;
  readonly backend?: BackendName;
  /** Whether to use only the cache, without a download. */
  readonly offline?: boolean;
}

/** Lines of standard input that are translated together. */
const LINES = 16;

/** Runs `orchard translate`. Returns the exit code. */
export async function runTranslate(folder: string, text: string | undefined, flags: TranslateFlags): Promise<number> {
  const { from: source, to: target, beams: numBeams, tokens: maxTokens, quantize, backend, offline } = flags;
  try {
    if (backend) setBackend(backend);
    const { model } = await loadModel<LoadableModel>(folder, { quantize, offline });
    if (!(model instanceof EncoderDecoder))
      throw new ArgumentError(
        "translate",
        "notATranslator",
        `expected a translation model such as Marian, NLLB or T5, got ${model.description.architecture} in ${folder}`,
      );
    for await (const lines of text === undefined ? groupsOf(createInterface({ input: process.stdin })) : [[text]]) {
      const full = lines.filter((line) => line.trim() !== "");
      const found = full.length ? await translate(model, full, { source, target, numBeams, maxTokens }) : [];
      for (const line of lines) console.log(line.trim() === "" ? "" : found.shift());
    }
    return 0;
  } catch (error) {
    if (!(error instanceof OrchardError)) throw error;
    console.error(error.message);
    return 1;
  }
}

/** Yields the lines of standard input in groups. */
async function* groupsOf(lines: AsyncIterable<string>): AsyncGenerator<string[]> {
  const group: string[] = [];
  for await (const line of lines) {
    group.push(line);
    if (group.length === LINES) yield group.splice(0);
  }
  if (group.length > 0) yield group;
}
