/** The drawn models of all architectures, and what `transformers` computes: scripts/fixtures/models/rows.py. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../../../src/core/paths.ts";
import { io, type nn } from "../../../../src/index.ts";
import type { ArchitectureName } from "../../../../src/nn/models/loading/architectures.ts";

export interface Drawn {
  readonly seed: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly shapes: Readonly<Record<string, number[]>>;
}

const fixtures = ["rows", "recent_rows"].map((name) => join(packageRoot, "test", "fixtures", "decoders", name));

export const families: Readonly<Record<ArchitectureName, { readonly drawn: readonly Drawn[] }>> = Object.assign(
  {},
  ...fixtures.map((path) => JSON.parse(readFileSync(`${path}.json`, "utf8")).families),
);

/** The results by the name of the model: `<model_type>.drawn.<index>.logits`. */
export const answers: nn.StateDict = Object.assign(
  {},
  ...fixtures.map((path) => io.loadSafetensors(`${path}.safetensors`)),
);
