/** Opens the folder of a {@link Whisper} model. */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { isSafeInteger, recordIn } from "../../../core/values.ts";
import { loadTokenizer } from "../../../text/load_tokenizer.ts";
import type { PretrainedTokenizer } from "../../../text/pretrained_tokenizer.ts";
import type { FeedForwardDescription } from "../decoder/description.ts";
import type { WhisperDescription, WhisperStack } from "../whisper/description.ts";
import type { WhisperSettings } from "../whisper/settings.ts";
import { Whisper } from "../whisper/whisper.ts";
import { encoderActivation } from "./encoder/activations.ts";
import { generationOf, settingsIn } from "./generation.ts";
import type { Place } from "./names.ts";
import { openWeights } from "./open_weights.ts";
import type { Opened } from "./opened.ts";
import { sourceOf } from "./packed/methods.ts";
import { Settings } from "./settings.ts";

/**
 * Opens the folder of a Whisper model. @throws {FileError} @throws {FileFormatError} @throws {ArgumentError} for
 * unsupported settings.
 */
export function openWhisper(path: string, config: object, prefix: string): Opened {
  const settings = new Settings(join(path, "config.json"), new Map(Object.entries(config)));
  const description = describeWhisper(settings);
  const tokenizer = existsSync(join(path, "tokenizer.json")) ? loadTokenizer(path) : undefined;
  const tokens = tokensOf(settings, settingsIn(path, "generation_config.json"), tokenizer);
  const file = openWeights(path, prefix);
  try {
    const source = sourceOf(file, settings);
    return {
      places: placesOf(description),
      style: "huggingFace",
      generation: generationOf(path),
      source: { ...source, isNeutral: (name) => name === "proj_out.weight" || (source.isNeutral?.(name) ?? false) },
      config: recordIn(config),
      chatTemplate: undefined,
      newModel(options) {
        const model = new Whisper(description, options);
        model.tokenizer = tokenizer;
        model.settings = tokens;
        return model;
      },
      [Symbol.dispose]: () => file.close(),
    };
  } catch (cause) {
    file.close();
    throw cause;
  }
}

function describeWhisper(config: Settings): WhisperDescription {
  const width = config.whole("d_model");
  const stack = (name: "encoder" | "decoder"): WhisperStack => {
    const heads = config.whole(`${name}_attention_heads`);
    if (width % heads !== 0) throw config.wrong(`${name}_attention_heads`, `a divisor of d_model (${width})`, heads);
    return { layers: config.whole(`${name}_layers`), heads, hidden: config.whole(`${name}_ffn_dim`) };
  };
  const activation = encoderActivation(config, "activation_function");
  if (activation === "tanh") throw config.wrong("activation_function", "gelu, relu or silu", activation);
  return {
    architecture: "whisper",
    width,
    vocabularySize: config.whole("vocab_size"),
    melBins: config.whole("num_mel_bins"),
    audioPositions: config.whole("max_source_positions"),
    contextLength: config.whole("max_target_positions"),
    encoder: stack("encoder"),
    decoder: stack("decoder"),
    activation: activation satisfies FeedForwardDescription["activation"],
    dropout: config.numberIfAny("dropout") ?? 0,
    attentionDropout: config.numberIfAny("attention_dropout") ?? 0,
  };
}

/** Reads the special tokens. Older folders lack some in `generation_config.json`, and the tokenizer has them. */
function tokensOf(
  config: Settings,
  generation: Settings,
  tokenizer: PretrainedTokenizer | undefined,
): WhisperSettings | undefined {
  const given = (name: string) => generation.wholeIfAny(name, 0) ?? config.wholeIfAny(name, 0);
  const spelled = (...texts: string[]) =>
    texts.map((text) => tokenizer?.idOf(text) ?? undefined).find(Number.isInteger);
  const startToken = given("decoder_start_token_id") ?? spelled("<|startoftranscript|>");
  const endToken = given("eos_token_id") ?? spelled("<|endoftext|>");
  const noTimestampsToken = given("no_timestamps_token_id") ?? spelled("<|notimestamps|>");
  if (startToken === undefined || endToken === undefined || noTimestampsToken === undefined) return undefined;
  const named = numbersIn(generation, "lang_to_id");
  // as in OpenAI's implementation, if no setting says whether the model is multilingual, its vocabulary size does
  const isLarge = config.whole("vocab_size") >= MULTILINGUAL;
  const isEnglish = !generation.flag("is_multilingual", named.length > 0 || isLarge);
  const spelledTasks = ["transcribe", "translate"].map((task) => [task, spelled(`<|${task}|>`)] as const);
  const languages = named.length > 0 ? named : spelledLanguages(tokenizer, startToken, spelled("<|translate|>"));
  const tasks = numbersIn(generation, "task_to_id");
  if (tasks.length === 0) for (const [task, token] of spelledTasks) if (token !== undefined) tasks.push([task, token]);
  const list = (name: string) => tokenList(generation, name) ?? tokenList(config, name) ?? [];
  return {
    startToken,
    endToken,
    noTimestampsToken,
    previousToken: given("prev_sot_token_id") ?? spelled("<|startofprev|>"),
    noSpeechToken: spelled("<|nospeech|>", "<|nocaptions|>") ?? noTimestampsToken - 1,
    languages: new Map(isEnglish ? [] : languages.map(([name, token]) => [name.replace(/^<\||\|>$/g, ""), token])),
    tasks: new Map(isEnglish ? [] : (tasks as ["transcribe" | "translate", number][])),
    suppressed: list("suppress_tokens"),
    beginSuppressed: list("begin_suppress_tokens"),
    latestStart: generation.wholeIfAny("max_initial_timestamp_index", 0),
    alignmentHeads: headsIn(generation),
    medianFilterWidth: config.wholeIfAny("median_filter_width") ?? 7,
  };
}

/** The smallest vocabulary of a multilingual model. */
const MULTILINGUAL = 51_865;

/** Returns the tokens of languages: those between the start token and the first task's token. */
function spelledLanguages(
  tokenizer: PretrainedTokenizer | undefined,
  start: number,
  translate: number | undefined,
): [name: string, token: number][] {
  const tokens = Array.from({ length: Math.max(0, (translate ?? 0) - start - 1) }, (_, at) => start + 1 + at);
  return tokens.flatMap((token): [string, number][] => {
    const name = tokenizer?.textOf(token);
    return name === undefined ? [] : [[name, token]];
  });
}

function numbersIn(settings: Settings, name: string): [name: string, token: number][] {
  const inner = settings.inner(name);
  return inner ? inner.names.map((key) => [key, inner.whole(key, 0)]) : [];
}

function tokenList(settings: Settings, name: string): number[] | undefined {
  const value = settings.get(name);
  if (value === undefined) return undefined;
  const isToken = (token: unknown) => isSafeInteger(token) && token >= 0;
  if (Array.isArray(value) && value.every(isToken)) return [...value];
  throw settings.wrong(name, "a list of tokens", value);
}

function headsIn(settings: Settings): (readonly [number, number])[] | undefined {
  const value = settings.get("alignment_heads");
  if (value === undefined) return undefined;
  const isPair = (pair: unknown) => Array.isArray(pair) && pair.length === 2 && pair.every(Number.isSafeInteger);
  if (Array.isArray(value) && value.every(isPair)) return value.map(([layer, head]) => [layer, head] as const);
  throw settings.wrong("alignment_heads", "a list of pairs [layer, head]", value);
}

const attentionNames = (prefix: string): Readonly<Record<string, string>> => ({
  query: `${prefix}.q_proj`,
  key: `${prefix}.k_proj`,
  value: `${prefix}.v_proj`,
  output: `${prefix}.out_proj`,
});

const block: Readonly<Record<string, string>> = {
  ...Object.fromEntries(Object.entries(attentionNames("self_attn")).map(([path, name]) => [`attention.${path}`, name])),
  attentionNorm: "self_attn_layer_norm",
  "feedForward.up": "fc1",
  "feedForward.down": "fc2",
  feedForwardNorm: "final_layer_norm",
};

const decoderBlock: Readonly<Record<string, string>> = {
  ...block,
  ...Object.fromEntries(
    Object.entries(attentionNames("encoder_attn")).map(([path, name]) => [`crossAttention.${path}`, name]),
  ),
  crossNorm: "encoder_attn_layer_norm",
};

/** Returns the place of every layer with weights; first the token embedding. */
function placesOf({ encoder, decoder }: WhisperDescription): Place[] {
  const place = (path: string, name: string): Place => ({ path, names: [`model.${name}`, name] });
  const stack = (path: string, name: string, layers: number, names: Readonly<Record<string, string>>) =>
    Array.from({ length: layers }, (_, index) =>
      Object.entries(names).map(([part, suffix]) =>
        place(`${path}.${index}.${part}`, `${name}.layers.${index}.${suffix}`),
      ),
    ).flat();
  return [
    place("tokenEmbedding", "decoder.embed_tokens"),
    place("positionEmbedding", "decoder.embed_positions"),
    place("conv1", "encoder.conv1"),
    place("conv2", "encoder.conv2"),
    place("audioPositionEmbedding", "encoder.embed_positions"),
    ...stack("encoderBlocks", "encoder", encoder.layers, block),
    place("encoderNorm", "encoder.layer_norm"),
    ...stack("blocks", "decoder", decoder.layers, decoderBlock),
    place("finalNorm", "decoder.layer_norm"),
  ];
}
