/** Reads the sparse attention of configs: GLM-5 and DeepSeek-V3.2. */
import type { LayerDescription } from "../decoder/description.ts";
import type { Settings } from "./settings.ts";

/** Adds the indexer to a layer. */
export function sparseParts(config: Settings, index: number, layer: LayerDescription): LayerDescription {
  const { attention } = layer;
  const latent = attention.latent!;
  if (latent.queryRank === undefined)
    throw config.wrong("q_lora_rank", "a number, the size that the indexer reads", null);
  const headWidth = config.whole("index_head_dim");
  if (headWidth < latent.rotated)
    throw config.wrong("index_head_dim", `at least qk_rope_head_dim, ${latent.rotated}`, headWidth);
  const isGlm = config.names.includes("indexer_types");
  const own = {
    heads: config.whole("index_n_heads"),
    headWidth,
    count: config.whole("index_topk"),
    interleaved: isGlm, // DeepSeek-V3.2 rotates the indexer's halves, and the pairs of other heads
    shared: isGlm && isShared(config, index),
  };
  return { ...layer, attention: { ...attention, latent: { ...latent, index: own } } };
}

const kinds: Readonly<Record<string, boolean>> = { full: false, shared: true, F: false, S: true };

/**
 * Whether a layer of GLM-5 uses the tokens that the layer before chose: as a list says, or else all layers but every
 * `index_topk_freq`-th. Source: Hugging Face's `GlmMoeDsaConfig`.
 */
function isShared(config: Settings, index: number): boolean {
  const count = config.whole("num_hidden_layers");
  const key = config.get("indexer_types") === undefined ? "index_topk_pattern" : "indexer_types";
  const given = config.get(key);
  if (given === undefined) {
    const period = Math.max(config.number("index_topk_freq"), 1);
    return Math.max(index - config.number("index_skip_topk_offset") + 1, 0) % period !== 0;
  }
  const list = typeof given === "string" ? [...given] : given;
  const isKnown = (kind: unknown) => typeof kind === "string" && Object.hasOwn(kinds, kind);
  if (Array.isArray(list) && list.length >= count && list.every(isKnown) && !kinds[list[0]]) return kinds[list[index]];
  throw config.wrong(key, `a list of ${count} values, each full or shared, the first full`, given);
}
