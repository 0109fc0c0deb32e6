/** The activations in an encoder's `config.json`. */
import type { EncoderActivation } from "../../encoder/description.ts";
import type { Settings } from "../settings.ts";
import type { EncoderName } from "./architectures.ts";

/** @internal The activations by their names in configs. `gelu_fast` and `gelu_new` differ in rounding. */
export const encoderActivations: Readonly<Record<string, EncoderActivation>> = {
  gelu: "gelu",
  gelu_python: "gelu",
  gelu_new: "geluTanh",
  gelu_pytorch_tanh: "geluTanh",
  gelu_fast: "geluTanh",
  relu: "relu",
  silu: "silu",
  swish: "silu",
  tanh: "tanh",
};

/** @internal Returns the activation in a field of a config. @throws {ArgumentError} `unknownActivation` */
export function encoderActivation(config: Settings, key: string): EncoderActivation {
  const activation = config.textIfAny(key) ?? "";
  if (Object.hasOwn(encoderActivations, activation)) return encoderActivations[activation];
  const known = Object.keys(encoderActivations).join(", ");
  throw config.refused("unknownActivation", `expected ${key} to be one of ${known}, got "${activation}"`);
}

/** @internal Returns the field with the activation of the feed-forward. */
export const activationKey = (name: EncoderName): string =>
  name === "distilbert" ? "activation" : name === "modernbert" ? "hidden_activation" : "hidden_act";
