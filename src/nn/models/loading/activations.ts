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
  relu2: "reluSquared",
};

/** OPT's activation, which no other decoder has. */
const withRelu = { ...activations, relu: "relu" } as const;

/** @internal Reads the name of an activation. @throws {ArgumentError} `unknownActivation` */
export function activationOf(config: Settings, name: string, hasRelu = false): FeedForwardDescription["activation"] {
  const known: typeof activations = hasRelu ? withRelu : activations;
  const activationName = config.textIfAny(name) ?? "";
  if (Object.hasOwn(known, activationName)) return known[activationName]!;
  const list = Object.keys(known).join(", ");
  throw config.refused("unknownActivation", `expected ${name} to be one of ${list}, got "${activationName}"`);
}
