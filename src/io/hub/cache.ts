/**
 * The model cache that Hugging Face's tools share: `models--owner--name` has `blobs`, named by checksum,
 * `snapshots/<commit>` with links to them, and `refs/<revision>` with a commit.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Json } from "../json.ts";
import { chooseGguf, ggufChoices, INDEX, MODULES, moduleFolders, shardsOf, WEIGHTS } from "./needed.ts";
import { folderName, type Reference } from "./reference.ts";

/** A model in the cache. */
export interface Cached {
  /** The folder, or the first GGUF file. */
  readonly path: string;
  /** False if files that loading uses, such as the tokenizer, may be missing; the weights are there. */
  readonly isComplete: boolean;
}

/** Returns the snapshot of a revision in a cache; undefined if there is none. */
export function snapshotOf(cache: string, { name, revision }: Reference): string | undefined {
  const folder = join(cache, folderName(name));
  const ref = join(folder, "refs", revision);
  const commit = existsSync(ref) ? readFileSync(ref, "utf8").trim() : revision;
  const snapshot = join(folder, "snapshots", commit);
  return /^[\w.-]+$/.test(commit) && existsSync(snapshot) ? snapshot : undefined;
}

/** Returns a model in a cache; undefined if its weights are not there, or only in part. */
export function cachedModel(cache: string, reference: Reference): Cached | undefined {
  const snapshot = snapshotOf(cache, reference);
  if (snapshot === undefined) return undefined;
  const { quantization } = reference;
  if (quantization === undefined && hasWeights(snapshot))
    return { path: snapshot, isComplete: hasInputs(snapshot) && hasModules(snapshot) };
  return cachedGguf(snapshot, reference);
}

function cachedGguf(snapshot: string, { name, quantization }: Reference): Cached | undefined {
  const choices = ggufChoices(filesIn(snapshot)).filter(({ files }) => files.length === partCount(files[0]));
  const fits = choices.filter((choice) => choice.quantization === quantization?.toUpperCase());
  if (choices.length === 0 || (quantization !== undefined && fits.length === 0)) return undefined;
  return { path: join(snapshot, chooseGguf(name, choices, quantization).files[0]), isComplete: true };
}

const partCount = (file: string): number => Number(/-of-(\d{5})\.gguf$/.exec(file)?.[1] ?? 1);

/** The files of a snapshot. A link to a missing blob does not count as a file. */
const filesIn = (snapshot: string): string[] =>
  readdirSync(snapshot, { recursive: true, encoding: "utf8" }).filter((path) => existsSync(join(snapshot, path)));

const jsonIn = (path: string): Json | undefined => {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as Json;
  } catch {
    return undefined; // missing or damaged; loading reports a damaged file
  }
};

function hasWeights(snapshot: string): boolean {
  if (!existsSync(join(snapshot, "config.json"))) return false;
  if (!existsSync(join(snapshot, INDEX))) return existsSync(join(snapshot, WEIGHTS));
  const shards = shardsOf(jsonIn(join(snapshot, INDEX)));
  return shards.length > 0 && shards.every((shard) => existsSync(join(snapshot, shard)));
}

const tokenizers = [
  "tokenizer.json",
  "tokenizer.model",
  "vocab.txt",
  "vocab.json",
  "spiece.model",
  "sentencepiece.bpe.model",
];
/** Image encoders have a processor instead of a tokenizer. */
const processors = ["preprocessor_config.json", "processor_config.json"];
const hasInputs = (snapshot: string): boolean =>
  [...tokenizers, ...processors].some((name) => existsSync(join(snapshot, name)));

/** Whether each module of sentence-transformers has its files. Only some modules have a config. */
const hasModules = (snapshot: string): boolean =>
  moduleFolders(jsonIn(join(snapshot, MODULES)))
    .filter((folder) => !folder.endsWith("Normalize"))
    .every((folder) => existsSync(join(snapshot, folder, "config.json")));
