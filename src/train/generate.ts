/** `orchard generate`: generates text with a model trained here or a pretrained one. */
import { existsSync, statSync } from "node:fs";
import type { BackendName } from "../backend/names.ts";
import { setBackend } from "../backend/policy.ts";
import { ArgumentError } from "../core/errors.ts";
import { formatBytes } from "../core/format.ts";
import { counted } from "../core/plural.ts";
import { printable } from "../core/printable.ts";
import { reportErrors } from "../core/report_errors.ts";
import type { Tokenizer } from "../data/tokenizer.ts";
import { locateModel } from "../io/hub/locate.ts";
import { parseReference } from "../io/hub/reference.ts";
import { generateText, type TextCodec } from "../nn/generation/text.ts";
import type { LanguageModel } from "../nn/models/language_model.ts";
import type { GgmlFormat } from "../quant/formats.ts";
import type { ProductPrecision } from "../quant/matmul/matmul.ts";
import { Generator } from "../random/generator.ts";
import { byteLengthOf } from "../tensor/tensor.ts";
import { checkpointsIn, findRun } from "./folder.ts";
import { makeModel } from "./model.ts";
import { loadQuantizedFile } from "./quantized_file.ts";
import { loadRun } from "./session.ts";
import { tokenizerOf } from "./text.ts";
import { isModel, loadAdapted, loadTuned } from "./tuning/load.ts";

/** The command-line options. */
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
  /** The folder of an adapter in PEFT's format, for a pretrained model. */
  readonly adapter?: string;
  /** Quantizes the weights of a pretrained model. */
  readonly quantize?: GgmlFormat;
  /** Whether to load a pretrained model from the cache only, without a download. */
  readonly offline?: boolean;
}

/** Generates text. Returns the exit code. @param named a run, a checkpoint or a model; by default the latest run */
export function runGenerate(named: string | undefined, flags: GenerateFlags): Promise<number> {
  return reportErrors(async () => {
    if (flags.backend) setBackend(flags.backend);
    const { model, tokenizer, isQuantized, stopTokens } = await loadModel(named, flags);
    const { prompt, tokens: maxTokens, stats = isQuantized, ...others } = flags;
    const { backend: _, precision: __, adapter: ___, quantize: ____, offline: _____, ...sampling } = others;
    const options = { ...sampling, ...(stopTokens && stopTokens.length > 0 && { stopTokens }) };
    const { codec, pace } = counting(tokenizer);
    let pending = prompt; // the prompt is written once the options have been validated
    for await (const piece of generateText(model, codec, prompt, { ...options, maxTokens })) {
      process.stdout.write(pending + printable(piece));
      pending = "";
    }
    process.stdout.write(`${pending}\n`);
    if (stats) console.error(`${pace()}, ${formatBytes(bytesOf(model))} of weights`);
    return 0;
  });
}

/** Wraps a tokenizer to count streamed tokens and the time since the first one, which excludes the prompt. */
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

/** Returns the path of a model on the hub. Other names belong to runs and files. */
const located = async (given: string, offline: boolean | undefined): Promise<string> =>
  existsSync(given) || parseReference(given) === undefined ? given : await locateModel("generate", given, { offline });

interface Loaded {
  readonly model: LanguageModel;
  readonly tokenizer: Tokenizer;
  readonly isQuantized: boolean;
  readonly stopTokens?: readonly number[];
}

async function loadModel(given: string | undefined, flags: GenerateFlags): Promise<Loaded> {
  const { adapter, quantize, precision, offline } = flags;
  const named = given === undefined ? undefined : await located(given, offline);
  if (named !== undefined && isModel(named)) {
    const options = { ...(quantize && { quantize }), ...(precision && { precision }) };
    return { ...(await loadAdapted(named, options, adapter)), isQuantized: quantize !== undefined };
  }
  const flag = adapter === undefined ? quantize && "--quantize" : "--adapter";
  if (flag !== undefined)
    throw new ArgumentError(
      "generate",
      "notAModel",
      `${flag} requires a Hugging Face model folder or a .gguf file, got ${named ?? "a run"}`,
    );
  const isFile = named !== undefined && statSync(named, { throwIfNoEntry: false })?.isFile();
  const loaded = isFile ? loadQuantizedFile(named, precision) : undefined;
  if (loaded !== undefined) return { model: loaded.model, tokenizer: loaded.tokenizer, isQuantized: true };
  const path = isFile ? named : checkpointsIn(findRun("generate", named));
  const tuned = await loadTuned(path);
  if (tuned) return { ...tuned, isQuantized: false };
  const { model: weights, extra } = await loadRun(path, "generate");
  const { settings } = extra;
  const tokenizer = tokenizerOf(settings, extra.tokenizer);
  const model = makeModel(settings, tokenizer.vocabularySize, new Generator(0)).eval();
  model.loadStateDict(weights);
  return { model, tokenizer, isQuantized: false };
}
