/** The names of activations in a `config.json`. */
import type { FeedForwardDescription } from "../decoder/description.ts";
import type { Settings } from "./settings.ts";

const activations: Readonly<Record<string, FeedForwardDescription["activation"]>> = {
  silu: "silu",
  swish: "silu",
  gelu: "gelu",
  gelu_new: "geluTanh",
  gelu_pytorch_tanh: "geluTanh",
  quick_gelu: "quickGelu",
  relu: "relu",
  relu2: "reluSquared",
};

/** @internal Reads the name of an activation. @throws {ArgumentError} `unknownActivation` */
export function activationOf(config: Settings, name: string): FeedForwardDescription["activation"] {
  const activationName = config.textIfAny(name) ?? "";
  if (Object.hasOwn(activations, activationName)) return activations[activationName];
  const list = Object.keys(activations).join(", ");
  throw config.refused("unknownActivation", `expected ${name} to be one of ${list}, got "${activationName}"`);
}
