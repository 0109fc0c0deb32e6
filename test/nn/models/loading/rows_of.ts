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

const fixture = join(packageRoot, "test", "fixtures", "decoders", "drawn");
const { models }: { models: Record<string, readonly Omit<Drawn, "key">[]> } = JSON.parse(
  readFileSync(`${fixture}.json`, "utf8"),
);

export const drawn: Readonly<Record<ArchitectureName, readonly Drawn[]>> = Object.assign(
  {},
  ...Object.entries(models).map(([name, all]) => ({
    [name]: all.map((own, at) => ({ ...own, key: `${name}.${at}` })),
  })),
);

/** The results by the model's key and their own name: `<key>.logits`. */
export const answers: nn.StateDict = io.loadSafetensors(`${fixture}.safetensors`);
