/** Reads the files of sentence-transformers: `modules.json`, and those that it names. */

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { noGrad } from "../../../../autograd/modes.ts";
import { lastElement } from "../../../../core/collections.ts";
import { ArgumentError, FileFormatError } from "../../../../core/errors.ts";
import { withFileErrors } from "../../../../io/file_errors.ts";
import { isJsonObject, type Json, parseJson } from "../../../../io/json.ts";
import { openFor } from "../../../../io/safetensors/open.ts";
import { toDType } from "../../../../ops/copy/cast.ts";
import { contiguous } from "../../../../ops/copy/copy.ts";
import { formatShape, sameShape } from "../../../../tensor/shape.ts";
import { keep } from "../../../../tensor/tidy.ts";
import type { LayerOptions } from "../../../layers/initialization.ts";
import {
  type Pooling,
  type SentenceDescription,
  SentenceHead,
  type SentenceStep,
  type sentenceActivations,
} from "../../encoder/sentence.ts";
import { checkKeys } from "../config_fields.ts";
import { Settings } from "../settings.ts";

const operation = "loadModel";

/**
 * Reads the steps after the hidden states. Returns a function that makes them with their weights; undefined for a
 * folder without `modules.json`.
 *
 * @throws {FileError} @throws {FileFormatError} @throws {ArgumentError} `unknownModule`, and `unsupportedConfig`, for
 * unsupported steps, which the error names.
 */
export function loadSentenceHead(folder: string, width: number): ((options: LayerOptions) => SentenceHead) | undefined {
  const path = join(folder, "modules.json");
  if (!existsSync(path)) return undefined;
  const modules = modulesIn(path);
  const poolings = modules
    .filter(({ type }) => type === "Pooling")
    .map((pooling) => poolingsOf(folder, pooling.path, width));
  if (poolings.length !== 1)
    throw new FileFormatError(operation, "invalidConfig", path, `expected one Pooling, got ${poolings.length}`);
  const steps = modules.flatMap(({ type, path: place }) => stepsOf(folder, type, place));
  const description = { poolings: poolings[0], steps, ...promptsOf(folder), ...limitsOf(folder) };
  const folders = modules.filter(({ type }) => type === "Dense").map((dense) => join(folder, dense.path));
  return (options) => filled(description, folders, options);
}

/** Returns the folders of a model's modules, as `modules.json` lists them. */
export const sentenceModules = (folder: string): readonly ModuleEntry[] => modulesIn(join(folder, "modules.json"));

interface ModuleEntry {
  readonly type: string;
  readonly path: string;
}

const known = ["Transformer", "Pooling", "Dense", "Normalize"];

function modulesIn(path: string): ModuleEntry[] {
  const json = jsonIn(path);
  const fail = (message: string) => new FileFormatError(operation, "invalidConfig", path, message);
  if (!Array.isArray(json)) throw fail("expected a list of modules");
  return json.map((entry: Json) => {
    const { type, path: place } = isJsonObject(entry) ? entry : {};
    if (typeof type !== "string" || typeof place !== "string") throw fail("expected modules with a type and a path");
    const name = lastElement(type.split("."));
    if (!known.includes(name))
      throw new ArgumentError(
        operation,
        "unknownModule",
        `${path}: expected modules to be ${known.join(", ")}, got "${type}"`,
      );
    if (name === "Transformer" && place !== "")
      throw new ArgumentError(
        operation,
        "unsupportedConfig",
        `${path}: expected the path of the Transformer to be empty, the only supported value, got "${place}"`,
      );
    return { type: name, path: place };
  });
}

function jsonIn(path: string): Json {
  const text = withFileErrors(operation, path, () => readFileSync(path, "utf8"));
  return parseJson(
    text,
    (_, message) => new FileFormatError(operation, "invalidConfig", path, `expected JSON: ${message}`),
  );
}

function settingsIn(path: string): Settings {
  const json = jsonIn(path);
  if (!isJsonObject(json)) throw new FileFormatError(operation, "invalidConfig", path, "expected a JSON object");
  return new Settings(path, new Map(Object.entries(json)));
}

/** The keys of Pooling's config. If several are set, their results are concatenated in this order. */
const poolingKeys: readonly (readonly [key: string, mode: string, pooling: Pooling])[] = [
  ["pooling_mode_cls_token", "cls", "first"],
  ["pooling_mode_max_tokens", "max", "max"],
  ["pooling_mode_mean_tokens", "mean", "mean"],
  ["pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", "meanSqrt"],
  ["pooling_mode_weightedmean_tokens", "weightedmean", "weightedMean"],
  ["pooling_mode_lasttoken", "lasttoken", "last"],
];

function poolingsOf(folder: string, place: string, width: number): Pooling[] {
  const config = settingsIn(join(folder, place, "config.json"));
  const others = ["word_embedding_dimension", "embedding_dimension", "pooling_mode", "include_prompt"];
  const isKnown = (key: string) => others.includes(key) || poolingKeys.some(([name]) => name === key);
  checkKeys(config, isKnown, "is not a setting of Pooling");
  const size = config.wholeIfAny("word_embedding_dimension") ?? config.wholeIfAny("embedding_dimension");
  if (size !== undefined && size !== width)
    throw config.wrong("word_embedding_dimension", `${width}, the size of hidden states`, size);
  if (!config.flag("include_prompt", true))
    throw config.refused(
      "unsupportedConfig",
      "expected include_prompt to be true, the only supported value, got false",
    );
  const mode = config.textIfAny("pooling_mode");
  const found = poolingKeys.filter(([key, name]) => config.flag(key, false) || name === mode);
  if (found.length > 0 && (mode === undefined || found.some(([, name]) => name === mode)))
    return found.map(([, , pooling]) => pooling);
  throw config.wrong("pooling_mode", poolingKeys.map(([, name]) => name).join(", "), mode);
}

const activationNames: Readonly<Record<string, keyof typeof sentenceActivations>> = {
  "torch.nn.modules.activation.Tanh": "tanh",
  "torch.nn.modules.activation.GELU": "gelu",
  "torch.nn.modules.activation.ReLU": "relu",
  "torch.nn.modules.activation.SiLU": "silu",
  "torch.nn.modules.activation.Sigmoid": "sigmoid",
  "torch.nn.modules.linear.Identity": "identity",
};

function stepsOf(folder: string, type: string, place: string): SentenceStep[] {
  if (type === "Normalize") return [{ kind: "normalize" }];
  if (type !== "Dense") return [];
  const config = settingsIn(join(folder, place, "config.json"));
  const keys = ["in_features", "out_features", "bias", "activation_function"];
  checkKeys(config, (key) => keys.includes(key), "is not a setting of Dense");
  const name = config.textIfAny("activation_function") ?? "torch.nn.modules.activation.Tanh";
  const activation = Object.hasOwn(activationNames, name) ? activationNames[name] : undefined;
  if (activation === undefined)
    throw config.refused(
      "unknownActivation",
      `expected activation_function to be one of ${Object.keys(activationNames).join(", ")}, got "${name}"`,
    );
  const [inputs, outputs] = [config.whole("in_features"), config.whole("out_features")];
  return [{ kind: "dense", inputs, outputs, bias: config.flag("bias", true), activation }];
}

type Prompts = Pick<SentenceDescription, "prompts" | "defaultPrompt" | "truncateDim">;

function promptsOf(folder: string): Prompts {
  const path = join(folder, "config_sentence_transformers.json");
  if (!existsSync(path)) return { prompts: {} };
  const config = settingsIn(path);
  const given = config.inner("prompts");
  const prompts = Object.fromEntries((given?.names ?? []).map((name) => [name, given!.textIfAny(name) ?? ""]));
  const defaultPrompt = config.textIfAny("default_prompt_name");
  if (defaultPrompt !== undefined && !Object.hasOwn(prompts, defaultPrompt))
    throw config.wrong("default_prompt_name", "the name of a prompt", defaultPrompt);
  return { prompts, defaultPrompt, truncateDim: config.wholeIfAny("truncate_dim") };
}

function limitsOf(folder: string): Pick<SentenceDescription, "longest" | "lowerCase"> {
  const path = join(folder, "sentence_bert_config.json");
  if (!existsSync(path)) return { lowerCase: false };
  const config = settingsIn(path);
  return { longest: config.wholeIfAny("max_seq_length"), lowerCase: config.flag("do_lower_case", false) };
}

/** Makes the steps, with the weights of their linear layers. */
function filled(description: SentenceDescription, folders: readonly string[], options: LayerOptions): SentenceHead {
  const { dtype = "float32" } = options;
  const head = new SentenceHead(description, { dtype });
  for (const [index, folder] of folders.entries()) {
    using file = openFor(operation, folder);
    const layer = head.layers[index];
    for (const end of layer.bias ? (["weight", "bias"] as const) : (["weight"] as const)) {
      const expected = layer[end]!.shape;
      const read = file.tensor(`linear.${end}`);
      if (!sameShape(read.shape, expected))
        throw new FileFormatError(
          operation,
          "wrongShape",
          file.path,
          `expected linear.${end} to have the shape ${formatShape(expected)}, got ${read.describe()}`,
        );
      const value = keep(noGrad(() => contiguous(toDType(read, dtype))));
      value.requiresGrad = true;
      Reflect.set(layer, end, value);
    }
  }
  return head;
}
