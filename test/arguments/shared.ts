/** Shared by the tables of arguments: the folder for files, and small models. */
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import * as orchard from "../../src/index.ts";
import { testFolder } from "../support/folder.ts";
import { smallCtc } from "./small_ctc.ts";
import { smallEncoder } from "./small_encoder.ts";
import { smallEncoderDecoder } from "./small_encoder_decoder.ts";
import { smallWhisper } from "./small_whisper.ts";

const { data, nn, tensor, zeros } = orchard;

/** The folder where functions write files. */
export let folder = "";
export const before = process.cwd();

/**
 * Creates a folder for files that functions write. It is the working folder too, since a hostile path may name a new
 * file.
 */
export function enterFolder(): void {
  folder = testFolder("arguments").path;
  process.chdir(folder);
}

export function leaveFolder(): void {
  process.chdir(before);
}
export type Call = (...values: never[]) => unknown;
/** Functions by name, each with valid arguments. */
export type Calls = Readonly<Record<string, readonly [call: Call, values: () => readonly unknown[]]>>;

/** A class as a function. */
export const make =
  (Class: new (...values: never[]) => unknown): Call =>
  (...values) =>
    new Class(...values);

export const leaf = () => zeros([2, 2], { requiresGrad: true });
export const { transforms } = data;
export const labels = () => tensor([0n, 1n]);
export const picture = () => zeros([2, 2, 3], { dtype: "uint8" });
export const sizes = { vocabularySize: 5, contextLength: 4, layers: 1, heads: 2, width: 4 };
export const model = new nn.GPT(sizes);
export const tokenizer = new data.ByteTokenizer();
export const decoders = join(packageRoot, "test", "fixtures", "decoders");
export const { model: decoder } = await nn.loadModel(join(decoders, "llama"));
export const adapter = nn.lora((await nn.loadModel(join(decoders, "qwen3"))).model, { rank: 1 });
export const smallTokenizer = {
  model: { type: "BPE", vocab: { a: 0, b: 1 }, merges: [] },
  normalizer: null,
  pre_tokenizer: null,
  post_processor: null,
  decoder: { type: "ByteLevel" },
  added_tokens: [],
};

export const encoders = {
  plain: await smallEncoder("Model"),
  classifier: await smallEncoder("ForSequenceClassification"),
  reranker: await smallEncoder("ForSequenceClassification", 1),
  tagger: await smallEncoder("ForTokenClassification"),
  reader: await smallEncoder("ForQuestionAnswering"),
  filler: await smallEncoder("ForMaskedLM"),
};

export const whisper = await smallWhisper();
export const ctc = await smallCtc();
export const audioClassifier = await smallCtc(true);
export const transcript = { text: "a", language: "en", task: "transcribe", duration: 1, segments: [] } as const;
export const encoderDecoder = await smallEncoderDecoder();

export const layerOptions = { dimFeedforward: 3, dropout: 0, layerNormEps: 1e-5 };
export const smallTransformer = new nn.Transformer({
  dModel: 4,
  nhead: 2,
  numEncoderLayers: 1,
  numDecoderLayers: 1,
  ...layerOptions,
});
