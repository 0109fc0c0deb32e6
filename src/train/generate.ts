/** `orchard generate`: generates text with a trained model. */
import { statSync } from "node:fs";
import type { BackendName } from "../backend/names.ts";
import { setBackend } from "../backend/policy.ts";
import { counted } from "../core/plural.ts";
import type { Tokenizer } from "../data/tokenizer.ts";
import { generateText, type TextCodec } from "../nn/generation/text.ts";
import type { LanguageModel } from "../nn/language_model.ts";
import type { ProductPrecision } from "../quant/matmul/matmul.ts";
import { Generator } from "../random/generator.ts";
import { byteLengthOf } from "../tensor/tensor.ts";
import { reportErrors } from "./errors.ts";
import { checkpointsIn, findRun } from "./folder.ts";
import { formatBytes } from "./format.ts";
import { makeModel } from "./model.ts";
import { loadQuantizedFile } from "./quantized_file.ts";
import { loadRun } from "./session.ts";
import { tokenizerOf } from "./text.ts";

/** The flags of the command line. */
export interface GenerateFlags {
  readonly prompt: string;
  readonly tokens: number;
  readonly temperature: number;
  readonly topK?: number;
  readonly topP?: number;
  readonly repetitionPenalty?: number;
  readonly seed?: number;
  readonly stats?: boolean;
  readonly precision?: ProductPrecision;
  readonly backend?: BackendName;
}

/** Returns the exit code. @param named the folder of a run or a checkpoint file; by default the latest run */
export function runGenerate(named: string | undefined, flags: GenerateFlags): Promise<number> {
  return reportErrors(async () => {
    if (flags.backend) setBackend(flags.backend);
    const { model, tokenizer, isQuantized } = await loadModel(named, flags.precision);
    const { prompt, tokens: maxTokens, backend: _, precision: __, stats = isQuantized, ...options } = flags;
    const { codec, pace } = counting(tokenizer);
    let pending = prompt; // is written when the flags were found to be valid
    for await (const piece of generateText(model, codec, prompt, { ...options, maxTokens })) {
      process.stdout.write(pending + piece);
      pending = "";
    }
    process.stdout.write(`${pending}\n`);
    if (stats) console.error(`${pace()}, ${formatBytes(bytesOf(model))} of weights`);
    return 0;
  });
}

/** A tokenizer that counts the tokens of a stream, and the seconds from the first, before which the prompt is read. */
function counting(tokenizer: Tokenizer) {
  let [count, first, last] = [0, 0, 0];
  const codec: TextCodec = {
    endOfText: tokenizer.endOfText,
    encode: (text) => tokenizer.encode(text),
    decoder() {
      const stream = tokenizer.decoder();
      return {
        push(token) {
          last = performance.now();
          if (count++ === 0) first = last;
          return stream.push(token);
        },
        end: () => stream.end(),
      };
    },
  };
  const pace = (): string => {
    const text = counted(count, "token");
    return count < 2 ? text : `${text}, ${(((count - 1) * 1000) / (last - first)).toPrecision(3)} tokens/s`;
  };
  return { codec, pace };
}

const bytesOf = (model: LanguageModel): number =>
  Object.values(model.stateDict()).reduce((sum, { shape, dtype }) => sum + byteLengthOf(shape, dtype), 0);

async function loadModel(named: string | undefined, precision: ProductPrecision | undefined) {
  const isFile = named !== undefined && statSync(named, { throwIfNoEntry: false })?.isFile();
  const own = isFile ? loadQuantizedFile(named, precision) : undefined;
  if (own !== undefined) return { model: own.model, tokenizer: own.tokenizer, isQuantized: true };
  const path = isFile ? named : checkpointsIn(findRun("generate", named));
  const { model: weights, extra } = await loadRun(path, "generate");
  const { settings } = extra;
  const tokenizer = tokenizerOf(settings, extra.tokenizer);
  const model = makeModel(settings, tokenizer.vocabularySize, new Generator(0)).eval();
  model.loadStateDict(weights);
  return { model, tokenizer, isQuantized: false };
}
