/** The kinds of layers that a `config.json` lists. */
import type { Settings } from "./settings.ts";

/** The values of `layer_types`, and whether they slide. */
export const kindsOfLayers: Readonly<Record<string, boolean>> = { sliding_attention: true, full_attention: false };

/** Whether a layer has a sliding window. @throws {FileFormatError} if `layer_types` lacks one kind per layer. */
export function slides(config: Settings, count: number, index: number): boolean {
  const types = config.get("layer_types");
  const isKnown = (type: unknown) => typeof type === "string" && Object.hasOwn(kindsOfLayers, type);
  if (Array.isArray(types) && types.length === count && types.every(isKnown)) return kindsOfLayers[types[index]];
  throw config.wrong(
    "layer_types",
    `a list of ${count} values (num_hidden_layers), each ${Object.keys(kindsOfLayers).join(" or ")}`,
    types,
  );
}
