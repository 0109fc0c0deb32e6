/** Creates the adapter of a run from its settings, and saves and restores it in checkpoints. */
import { CheckpointError } from "../../core/errors.ts";
import type { Decoder } from "../../nn/models/decoder/decoder.ts";
import { type LoraAdapter, lora } from "../../nn/models/lora/lora.ts";
import { copy_ } from "../../ops/copy/inplace.ts";
import { detach } from "../../ops/gradient/backward.ts";
import type { Generator } from "../../random/generator.ts";
import { sameShape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { TuningSettings } from "./settings.ts";

export function adapt(model: Decoder, settings: AdapterSettings, generator: Generator): LoraAdapter {
  const { lora: rank, loraAlpha: alpha, loraDropout: dropout, loraTargets: targets } = settings;
  const chosen = { ...(alpha > 0 && { alpha }), ...(targets.length > 0 && { targets }) };
  return lora(model, { rank, dropout, generator, ...chosen });
}

type AdapterSettings = Pick<TuningSettings, "lora" | "loraAlpha" | "loraDropout" | "loraTargets">;

/** Returns its matrices by name, without autograd history. */
export const weightsOf = (adapter: LoraAdapter): Record<string, Tensor> =>
  Object.fromEntries([...adapter.namedParameters()].map(([name, tensor]) => [name, detach(tensor)]));

/** Copies the matrices of a checkpoint into an adapter. @throws {CheckpointError} `otherShape` */
export function restoreAdapter(adapter: LoraAdapter, saved: Readonly<Record<string, Tensor>>): void {
  for (const [name, target] of Object.entries(weightsOf(adapter))) copyFrom(saved, name, target);
}

function copyFrom(saved: Readonly<Record<string, Tensor>>, name: string, target: Tensor): void {
  const stored = saved[name];
  if (!stored || !sameShape(stored.shape, target.shape))
    throw new CheckpointError(
      "train",
      "otherShape",
      `expected ${name} to be ${stored?.describe() ?? "absent"}, as in the checkpoint, got ${target.describe()}`,
    );
  copy_(target, stored);
}
