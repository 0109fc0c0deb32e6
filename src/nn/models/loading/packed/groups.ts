/**
 * Quantized weights of GPTQ and AWQ: integer levels, with a scale and a zero for each output and group of inputs.
 *
 *     W[o, i] = (level[o, i] − zero[g, o]) · scale[g, o], where g is the group of input i
 *
 * The affine format stores this as level · scale + bias, with bias = −zero · scale. It requires groups of adjacent
 * inputs; other weights are dequantized to float32.
 */
import { tensor } from "../../../../ops/creation/tensor.ts";
import { unpackLevels } from "../../../../quant/affine/pack.ts";
import { type AffineBits, type AffineFormat, type GroupSize, groupSizes } from "../../../../quant/formats.ts";
import { QuantizedTensor } from "../../../../quant/quantized_tensor.ts";
import type { Tensor } from "../../../../tensor/tensor.ts";

/** The layout, groups and zeros of a layer's weights. */
export interface Groups {
  readonly outputs: number;
  readonly inputs: number;
  readonly bits: AffineBits;
  /** The group of each input. */
  readonly groupOf: ArrayLike<number>;
  /** The zero of each group and output, [groups, outputs]. */
  readonly zeros: Uint8Array;
}

/** Returns the affine format of a layer; null if its groups are not adjacent inputs. */
export function formatOf({ inputs, bits, groupOf, zeros }: Groups): AffineFormat | null {
  const isBlock = (size: GroupSize) =>
    inputs % size === 0 &&
    Array.from({ length: inputs }).every((_, input) => groupOf[input] === groupOf[input - (input % size)]);
  const groupSize = groupSizes.findLast(isBlock);
  const symmetric = zeros.every((zero) => zero === 2 ** (bits - 1));
  return groupSize === undefined ? null : { bits, groupSize, symmetric };
}

/**
 * Returns the weight [outputs, inputs]: quantized, or float32 if no affine format fits.
 *
 * @param packed the levels as in the affine format: [outputs, inputs · bits / 32]
 * @param scales [groups, outputs]
 */
export function weightOf(groups: Groups, packed: Uint32Array, scales: Float32Array): QuantizedTensor | Tensor {
  const format = formatOf(groups);
  return format ? affineOf(groups, format, packed, scales) : plainOf(groups, packed, scales);
}

function affineOf(
  { outputs, inputs, groupOf, zeros }: Groups,
  format: AffineFormat,
  packed: Uint32Array,
  scales: Float32Array,
): QuantizedTensor {
  const blocks = inputs / format.groupSize;
  const arrays = { scales: new Float32Array(outputs * blocks), biases: new Float32Array(outputs * blocks) };
  for (let block = 0; block < blocks; block++) {
    const first = groupOf[block * format.groupSize] * outputs;
    for (let output = 0; output < outputs; output++) {
      const scale = scales[first + output];
      arrays.scales[output * blocks + block] = scale;
      arrays.biases[output * blocks + block] = -zeros[first + output] * scale;
    }
  }
  const shaped = (values: Float32Array) => tensor(values, { shape: [outputs, blocks] });
  return new QuantizedTensor(format, [outputs, inputs], "float32", {
    packed: tensor(packed, { shape: [outputs, (inputs * format.bits) / 32], dtype: "uint32" }),
    scales: shaped(arrays.scales),
    biases: format.symmetric ? undefined : shaped(arrays.biases),
  });
}

function plainOf({ outputs, inputs, bits, groupOf, zeros }: Groups, packed: Uint32Array, scales: Float32Array): Tensor {
  const levels = new Uint8Array(outputs * inputs);
  unpackLevels(packed, bits, levels);
  const values = Float32Array.from(levels, (level, at) => {
    const group = groupOf[at % inputs] * outputs + Math.floor(at / inputs);
    return (level - zeros[group]) * scales[group];
  });
  return tensor(values, { shape: [outputs, inputs] });
}
