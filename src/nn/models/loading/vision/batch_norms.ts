/** Batch norms of checkpoints as factors and offsets. */
import type { SafetensorsReader } from "../../../../io/safetensors/file.ts";
import { toDType } from "../../../../ops/copy/cast.ts";
import { add, mul, sub } from "../../../../ops/elementwise/arithmetic.ts";
import { rsqrt } from "../../../../ops/elementwise/power.ts";
import type { DType, FloatDType } from "../../../../tensor/dtype.ts";
import type { Tensor } from "../../../../tensor/tensor.ts";
import { tidy } from "../../../../tensor/tidy.ts";
import type { WeightSource } from "../source.ts";

const MEAN = ".running_mean";

/**
 * Presents each batch norm as `weight` = γ / √(variance + eps) and `bias` = β − mean · weight, without its statistics:
 * see {@link FixedBatchNorm}.
 */
export function withFixedNorms(file: SafetensorsReader, source: WeightSource, eps: number): WeightSource {
  const norms = new Set(file.names.filter((name) => name.endsWith(MEAN)).map((name) => name.slice(0, -MEAN.length)));
  const partOf = (name: string) => /^(.*)\.(weight|bias)$/.exec(name)?.slice(1) as [string, string] | undefined;
  const isStatistic = (name: string) =>
    norms.has(name.replace(/\.(running_mean|running_var|num_batches_tracked)$/, "")) && !partOf(name);
  return {
    ...source,
    names: source.names.filter((name) => !isStatistic(name)),
    describe(name) {
      const [norm = ""] = partOf(name) ?? [];
      const stored = source.describe(name);
      return norms.has(norm) ? { ...stored, dtype: computedDType(stored.dtype), isComputed: true } : stored;
    },
    read(name) {
      const [norm = "", end] = partOf(name) ?? [];
      return norms.has(norm) ? fixed(file, norm, end as "weight" | "bias", eps) : source.read(name);
    },
  };
}

function fixed(file: SafetensorsReader, norm: string, end: "weight" | "bias", eps: number): Tensor {
  return tidy(() => {
    const read = (part: string) => toDType(file.tensor(`${norm}.${part}`), "float64");
    const weight = mul(read("weight"), rsqrt(add(read("running_var"), eps)));
    const value = end === "weight" ? weight : sub(read("bias"), mul(read("running_mean"), weight));
    return toDType(value, computedDType(file.tensor(`${norm}.weight`).dtype));
  });
}

/** Products of weights in half precision are not rounded to it, unless the model is loaded in it. */
const computedDType = (dtype: DType | null): FloatDType => (dtype === "float64" ? dtype : "float32");
