/** Chooses the files of a repository that loading a model needs. */
import { lastElement } from "../../core/collections.ts";
import { ArgumentError } from "../../core/errors.ts";
import { isJsonObject, type Json } from "../json.ts";

/** The files that list other required files. */
export const INDEX = "model.safetensors.index.json";
export const MODULES = "modules.json";
export const WEIGHTS = "model.safetensors";

/** Patterns of configs and tokenizers. */
const small = ["*.json", "*.jinja", "*.model", "*.spm", "merges.txt", "vocab.txt"];
const inModules = ["json", "safetensors", "txt", "model"];
/** Weights in pickle's format, which loading rejects because it can run code. */
const pickled = /^pytorch_model.*\.bin$/;

/** The paths of a repository, and the contents of two of its files, if it has them. */
export interface Contents {
  readonly paths: readonly string[];
  readonly index: Json | undefined;
  readonly modules: Json | undefined;
}

/** Whether a path matches one of the patterns. `*` does not match a slash. */
export const matches = (path: string, patterns: readonly string[]): boolean =>
  patterns.some((pattern) => new Bun.Glob(pattern).match(path));

/** Returns the shards in the index of a sharded model. */
export function shardsOf(index: Json | undefined): string[] {
  const map = index !== undefined && isJsonObject(index) ? index["weight_map"] : undefined;
  if (map === undefined || !isJsonObject(map)) return [];
  return [...new Set(Object.values(map).filter((file) => typeof file === "string"))];
}

/** Returns the folders of the modules of a sentence-transformers model. */
export function moduleFolders(modules: Json | undefined): string[] {
  if (!Array.isArray(modules)) return [];
  return modules
    .map((entry: Json) => (isJsonObject(entry) ? entry["path"] : undefined))
    .filter((path) => typeof path === "string" && path !== "") as string[];
}

/**
 * Returns the files that loading needs: configs, tokenizers, and weights in one format. Weights come last, so that an
 * interrupted download does not look complete.
 *
 * @throws {ArgumentError} `pickledWeights` if the only weights are pickled.
 */
export function neededFiles(name: string, { paths, index, modules }: Contents): string[] {
  const folders = moduleFolders(modules).map((path) => `${path}/`);
  const isInModule = (path: string) =>
    folders.some((folder) => path.startsWith(folder)) && inModules.includes(lastElement(path.split(".")));
  const weights = weightsAmong(paths, index);
  const others = paths.filter((path) => matches(path, small) || isInModule(path));
  const bins = paths.filter((path) => pickled.test(path));
  if (weights.length === 0 && bins.length > 0) throw onlyPickled(name, bins[0]);
  return [...others, ...weights];
}

function weightsAmong(paths: readonly string[], index: Json | undefined): string[] {
  const shards = shardsOf(index);
  if (shards.length > 0) return paths.filter((path) => shards.includes(path));
  return paths.includes(WEIGHTS) ? [WEIGHTS] : paths.filter((path) => matches(path, ["*.safetensors"]));
}

const onlyPickled = (name: string, file: string): ArgumentError =>
  new ArgumentError(
    "pull",
    "pickledWeights",
    `${name} has its weights in ${file} only, which is not supported: reading it can run any code in it. If you ` +
      `trust it, convert it: python -c "from transformers import AutoModel as M, AutoTokenizer as T; ` +
      `[x.from_pretrained('${name}').save_pretrained('converted') for x in (M, T)]"`,
  );

/** The quantization that is chosen if a repository has several and none is named, as in llama.cpp. */
const USUAL_QUANTIZATION = "Q4_K_M";

/** One model of GGUF files: a file, or the parts of one, in order. */
export interface GgufChoice {
  readonly quantization: string;
  readonly files: readonly string[];
}

/** Lists the models among the files of a repository. Vision parts (`mmproj`) and importance matrices are not models. */
export function ggufChoices(paths: readonly string[]): GgufChoice[] {
  const groups = new Map<string, string[]>();
  for (const path of paths.toSorted()) {
    if (!path.endsWith(".gguf") || /(^|[/._-])(mmproj|imatrix)/i.test(path)) continue;
    const whole = path.replace(/-\d{5}-of-\d{5}\.gguf$/, ".gguf");
    groups.set(whole, [...(groups.get(whole) ?? []), path]);
  }
  return [...groups].map(([whole, files]) => ({ quantization: quantizationOf(whole), files }));
}

/** The last part of a name that looks like a quantization: `Q4_K_M`, `IQ2_XXS`, `BF16`, `MXFP4`. */
function quantizationOf(path: string): string {
  const file = lastElement(path.split("/")).replace(/\.gguf$/, "");
  const pattern = /(?:^|[._-])((?:I?Q\d|TQ\d|F16|F32|BF16|FP16|FP32|MXFP4|fp16|f16|f32|bf16|i?q\d)\w*)/g;
  return [...file.matchAll(pattern)].at(-1)?.[1]?.toUpperCase() ?? file;
}

/**
 * Chooses a model of a repository of GGUF files.
 *
 * @throws {ArgumentError} `unknownQuantization` if there is none, or several that fit; the error lists them.
 */
export function chooseGguf(name: string, choices: readonly GgufChoice[], quantization?: string): GgufChoice {
  const asked = (quantization ?? USUAL_QUANTIZATION).toUpperCase();
  const found = choices.filter((choice) => choice.quantization === asked);
  if (found.length === 1) return found[0];
  if (quantization === undefined && choices.length === 1) return choices[0];
  const known = choices.map((choice) => choice.quantization).join(", ") || "no GGUF file";
  const [problem, advice] =
    found.length > 1
      ? [`${found.length} files with ${asked}`, `name one with \`orchard pull ${name} --include FILE\``]
      : [known, `name one as in ${name}:${choices[0]?.quantization ?? USUAL_QUANTIZATION}`];
  throw new ArgumentError(
    "pull",
    "unknownQuantization",
    `expected ${name} to have one GGUF file with ${asked}, got ${problem}; ${choices.length ? advice : "omit it"}`,
  );
}
