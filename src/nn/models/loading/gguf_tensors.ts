/**
 * Restores the checkpoint's tensors where llama.cpp's converter splits, joins or transforms them. A decay is stored as
 * A = −exp(logDecay), and the second projection of latent keys and values as two tensors. Source: llama.cpp's
 * `convert_hf_to_gguf.py`.
 */
import type { GgufReader } from "../../../io/gguf/file.ts";
import { toDType } from "../../../ops/copy/cast.ts";
import { tensor } from "../../../ops/creation/tensor.ts";
import { neg } from "../../../ops/elementwise/arithmetic.ts";
import { log } from "../../../ops/elementwise/logarithm.ts";
import { cat } from "../../../ops/join/cat.ts";
import { transpose } from "../../../ops/view/permute.ts";
import { reshape } from "../../../ops/view/reshape.ts";
import { dequantize } from "../../../quant/dequantize/dequantize.ts";
import { QuantizedTensor } from "../../../quant/quantized_tensor.ts";
import { elementCount, type Shape } from "../../../tensor/shape.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { tidy } from "../../../tensor/tidy.ts";
import type { StoredTensor, WeightSource } from "./source.ts";

type Metadata = GgufReader["metadata"];

/** Returns the values of a tensor in float32. */
function plain(source: WeightSource, name: string): Tensor {
  const value = source.read(name);
  return QuantizedTensor.isQuantized(value) ? toDType(dequantize(value), "float32") : toDType(value, "float32");
}

interface Restored {
  readonly shape: Shape;
  /** The tensors that the values come from. */
  readonly from: readonly string[];
  readonly read: () => Tensor;
}

/** Returns the restored tensor of a name; undefined if the file has it as the checkpoint does. */
function restored(source: WeightSource, name: string, metadata: Metadata): Restored | undefined {
  const [, layer, key] = /^blk\.(\d+)\.(xielu\.\w+)$/.exec(name) ?? [];
  if (key !== undefined) {
    const value: unknown = metadata[key]?.value;
    const own = Number(Array.isArray(value) ? value[Number(layer)] : value);
    return Number.isFinite(own) ? { shape: [1], from: [], read: () => tensor([own]) } : undefined;
  }
  if (/\.ssm_a$/.test(name) && source.has(name)) {
    const shape = [elementCount(source.describe(name).shape)];
    return { shape, from: [name], read: () => reshape(log(neg(plain(source, name))), shape) };
  }
  // files store these vectors with an additional axis, of groups or of size 1
  if (
    /\.(ssm_d|ssm_norm\.weight|exp_probs_b\.bias)$/.test(name) &&
    source.has(name) &&
    source.describe(name).shape.length > 1
  ) {
    const shape = [elementCount(source.describe(name).shape)];
    return { shape, from: [name], read: () => reshape(plain(source, name), shape) };
  }
  if (/\.ssm_conv1d_[qkv]\.weight$/.test(name) && source.has(name)) {
    const shape = source.describe(name).shape.filter((size) => size > 1);
    return { shape, from: [name], read: () => reshape(plain(source, name), shape) };
  }
  const block = /^(.*\.)attn_kv_b\.weight$/.exec(name)?.[1];
  if (block === undefined || source.has(name)) return undefined;
  const [keys, values] = [`${block}attn_k_b.weight`, `${block}attn_v_b.weight`];
  if (!source.has(keys) || !source.has(values)) return undefined;
  const [heads, rank, width] = source.describe(keys).shape as [number, number, number];
  const shape = [heads * (width + source.describe(values).shape[1]), rank];
  const read = () => reshape(cat([transpose(plain(source, keys), 1, 2), plain(source, values)], 1), shape);
  return { shape, from: [keys, values], read };
}

/** Returns a source with the tensors as the checkpoint has them. Numbers of xIELU are in the metadata. */
export function restoredTensors(source: WeightSource, metadata: Metadata): WeightSource {
  const names = source.names.flatMap((name) => {
    const block = /^(.*\.)attn_k_b\.weight$/.exec(name)?.[1];
    return block === undefined ? (/\.attn_v_b\.weight$/.test(name) ? [] : [name]) : [`${block}attn_kv_b.weight`];
  });
  return {
    ...source,
    names,
    has: (name) => source.has(name) || restored(source, name, metadata) !== undefined,
    read(name) {
      const own = restored(source, name, metadata);
      return own ? tidy(own.read) : source.read(name);
    },
    describe(name): StoredTensor {
      const own = restored(source, name, metadata);
      if (!own) return source.describe(name);
      const byteLength = own.from.reduce((sum, each) => sum + source.describe(each).byteLength, 0);
      return { shape: own.shape, byteLength, type: "f32", dtype: "float32", format: null, isComputed: true };
    },
  };
}
