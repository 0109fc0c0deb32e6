/** Settings of Falcon's config whose names differ from Llama's. */
import type { LayerDescription } from "../decoder/description.ts";
import type { Settings } from "./settings.ts";

/** Falcon 7B has one key head, Falcon 40B (`new_decoder_architecture`) and 180B a few. */
export function falconFields(config: Settings): Readonly<Record<string, unknown>> {
  const heads = config.whole("num_attention_heads");
  const width = config.whole("hidden_size");
  if (width % heads !== 0) throw config.wrong("hidden_size", "a multiple of num_attention_heads", width);
  const isNew = config.flag("new_decoder_architecture", false);
  const keyValueHeads = config.wholeIfAny("num_kv_heads") ?? heads;
  const isOneHead = !isNew && config.flag("multi_query", false);
  if (!isNew && !isOneHead && keyValueHeads !== heads)
    throw config.wrong("num_kv_heads", "num_attention_heads without multi_query", keyValueHeads);
  return {
    num_key_value_heads: isOneHead ? 1 : keyValueHeads,
    intermediate_size: config.wholeIfAny("ffn_hidden_size") ?? 4 * width,
  };
}

/**
 * Reads how Falcon's norms and parallel parts are combined. @throws {FileFormatError} for combinations that
 * `transformers` can't compute.
 */
export function falconParallel(config: Settings): LayerDescription["parallel"] {
  const isParallel = config.flag("parallel_attn", false);
  const norms = config.wholeIfAny("num_ln_in_parallel_attn");
  if (!config.flag("new_decoder_architecture", false)) {
    if (isParallel && norms === 2)
      throw config.wrong("num_ln_in_parallel_attn", "1 without new_decoder_architecture", 2);
    return isParallel ? "sharedNorm" : undefined;
  }
  if (!isParallel) throw config.wrong("parallel_attn", "true with new_decoder_architecture", isParallel);
  if (norms !== undefined && norms > 2) throw config.wrong("num_ln_in_parallel_attn", "1 or 2", norms);
  return norms === 1 ? "sharedNorm" : "separateNorms";
}
