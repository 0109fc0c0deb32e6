/**
 * GPTQ's and AWQ's weights: levels of a few bits, with a scale and a zero for each group of inputs of an output.
 *
 *     W[o, i] = (level[o, i] − zero[g, o]) · scale[g, o], where g is the group of input i
 *
 * In the affine format this is level · scale + bias with bias = −zero · scale. Where groups are not blocks of adjacent
 * inputs, no format has such weights, and they become plain ones.
 */
import { tensor } from "../../../../ops/creation/tensor.ts";
import { unpackLevels } from "../../../../quant/affine/pack.ts";
import { type AffineBits, type AffineFormat, type GroupSize, groupSizes } from "../../../../quant/formats.ts";
import { QuantizedTensor } from "../../../../quant/quantized_tensor.ts";
import type { Tensor } from "../../../../tensor/tensor.ts";

/** What the values of a layer are made of. */
export interface Groups {
  readonly outputs: number;
  readonly inputs: number;
  readonly bits: AffineBits;
  /** The group of each input. */
  readonly groupOf: ArrayLike<number>;
  /** Of each group and output, [groups, outputs]. */
  readonly zeros: Uint8Array;
}

/** The format of a layer; null where its groups are none of adjacent inputs. */
export function formatOf({ inputs, bits, groupOf, zeros }: Groups): AffineFormat | null {
  const isBlock = (size: GroupSize) =>
    inputs % size === 0 &&
    Array.from({ length: inputs }).every((_, input) => groupOf[input] === groupOf[input - (input % size)]);
  const groupSize = groupSizes.findLast(isBlock);
  const symmetric = zeros.every((zero) => zero === 2 ** (bits - 1));
  return groupSize === undefined ? null : { bits, groupSize, symmetric };
}

/**
 * The weight [outputs, inputs]: quantised, or float32 where there is no format for it.
 *
 * @param packed the levels as the affine format has them: [outputs, inputs · bits / 32]
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
  const own = { scales: new Float32Array(outputs * blocks), biases: new Float32Array(outputs * blocks) };
  for (let block = 0; block < blocks; block++) {
    const first = groupOf[block * format.groupSize]! * outputs;
    for (let output = 0; output < outputs; output++) {
      const scale = scales[first + output]!;
      own.scales[output * blocks + block] = scale;
      own.biases[output * blocks + block] = -zeros[first + output]! * scale;
    }
  }
  const shaped = (values: Float32Array) => tensor(values, { shape: [outputs, blocks] });
  return new QuantizedTensor(format, [outputs, inputs], "float32", {
    packed: tensor(packed, { shape: [outputs, (inputs * format.bits) / 32], dtype: "uint32" }),
    scales: shaped(own.scales),
    biases: format.symmetric ? undefined : shaped(own.biases),
  });
}

function plainOf({ outputs, inputs, bits, groupOf, zeros }: Groups, packed: Uint32Array, scales: Float32Array): Tensor {
  const levels = new Uint8Array(outputs * inputs);
  unpackLevels(packed, bits, levels);
  const values = Float32Array.from(levels, (level, at) => {
    const group = groupOf[at % inputs]! * outputs + Math.floor(at / inputs);
    return (level - zeros[group]!) * scales[group]!;
  });
  return tensor(values, { shape: [outputs, inputs] });
}
