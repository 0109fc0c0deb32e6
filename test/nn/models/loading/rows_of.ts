/** The drawn models of all architectures, and what `transformers` computes: scripts/fixtures/models/drawn.py. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../../../src/core/paths.ts";
import { io, type nn } from "../../../../src/index.ts";
import type { ArchitectureName } from "../../../../src/nn/models/loading/architectures.ts";

export interface Drawn {
  /** The start of the names of its results, before a dot. */
  readonly key: string;
  readonly seed: string;
  /** The number of tokens of the shorter text in the batch. */
  readonly short: number;
  readonly config: Readonly<Record<string, unknown>>;
  readonly shapes: Readonly<Record<string, number[]>>;
}

const fixture = (name: string) => join(packageRoot, "test", "fixtures", "decoders", name);
const read = (name: string) => JSON.parse(readFileSync(`${fixture(name)}.json`, "utf8"));

const { models }: { models: Record<string, readonly Omit<Drawn, "key">[]> } = read("drawn");
/** Newer architectures, by recent_rows.py. The shorter text of each has seven tokens. */
const { families: recent }: { families: Record<string, { readonly drawn: readonly Omit<Drawn, "key" | "short">[] }> } =
  read("recent_rows");

export const drawn = Object.fromEntries([
  ...Object.entries(models).map(([name, all]) => [name, all.map((own, at) => ({ ...own, key: `${name}.${at}` }))]),
  ...Object.entries(recent).map(([name, { drawn: all }]) => [
    name,
    all.map((own, at) => ({ ...own, short: 7, key: `${name}.drawn.${at}` })),
  ]),
]) as Readonly<Record<ArchitectureName, readonly Drawn[]>>;

/** The results by the model's key and their own name: `<key>.logits`. */
export const answers: nn.StateDict = Object.assign(
  {},
  ...["drawn", "recent_rows"].map((name) => io.loadSafetensors(`${fixture(name)}.safetensors`)),
);
