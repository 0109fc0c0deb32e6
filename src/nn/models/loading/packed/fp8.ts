/**
 * Reads weights in 8-bit floats (`float8_e4m3fn`) with scales: W = float · scale. `weight_scale_inv` has a scale for
 * each block, [block rows, block columns]. `weight_scale` has one scale for all, or one for each output.
 *
 * A float has a sign bit, four exponent bits with a bias of 7 and three mantissa bits. There are no infinities; NaN has
 * all bits but the sign set. Source: P. Micikevicius et al., "FP8 formats for deep learning", 2022. The layout is that
 * of DeepSeek-V3's and Qwen3's files.
 */
import type { SafetensorsReader } from "../../../../io/safetensors/file.ts";
import { tensor } from "../../../../ops/creation/tensor.ts";
import type { Tensor } from "../../../../tensor/tensor.ts";
import type { Settings } from "../settings.ts";
import { floats } from "./elements.ts";
import { bytesOfParts, checkPart, floating, layersWith, matrixOf, type PackedLayer, type Packing } from "./source.ts";

const FLOAT8 = "F8_E4M3";

/** Returns the value of each byte. */
const valuesOfBytes = (): Float32Array =>
  Float32Array.from({ length: 256 }, (_, byte) => {
    const [exponent, mantissa] = [(byte >> 3) & 15, byte & 7];
    if (exponent === 15 && mantissa === 7) return Number.NaN;
    const magnitude = exponent === 0 ? mantissa * 2 ** -9 : (8 + mantissa) * 2 ** (exponent - 10);
    return byte < 128 ? magnitude : -magnitude;
  });

/** Reads a folder with weights in 8-bit floats. */
export const fp8: Packing = (file, settings) => {
  const format = settings.textIfAny("fmt") ?? "e4m3";
  if (format !== "e4m3") throw settings.wrong("fmt", "e4m3, the only supported value", format);
  const layers = layersWith(file, "weight").filter((name) => file.info(`${name}.weight`).dtype === FLOAT8);
  return new Map(layers.map((name) => [name, layerOf(file, name, settings)]));
};

function layerOf(file: SafetensorsReader, name: string, settings: Settings): PackedLayer {
  // `input_scale` is for rounding activations, which stay unrounded here
  const ends = ["weight", "weight_scale_inv", "weight_scale", "input_scale"];
  const parts = ends.map((end) => `${name}.${end}`).filter((part) => file.has(part));
  const shape = matrixOf(file, settings, `${name}.weight`, [FLOAT8]);
  const scales = scalesOf(file, name, settings, shape);
  return {
    parts,
    describe: () => ({
      shape,
      byteLength: bytesOfParts(file, parts),
      type: FLOAT8,
      dtype: "float32",
      format: null,
      isComputed: true,
    }),
    read: () => scaled(file, name, shape, scales),
  };
}

/** The tensor of scales, and how many rows and columns of the weight share each scale. */
interface Scales {
  readonly name: string;
  readonly rows: number;
  readonly columns: number;
}

function scalesOf(
  file: SafetensorsReader,
  layer: string,
  settings: Settings,
  [outputs, inputs]: readonly [number, number],
): Scales {
  const name = ["weight_scale_inv", "weight_scale"]
    .map((end) => `${layer}.${end}`)
    .find((candidate) => file.has(candidate));
  if (name === undefined)
    throw settings.fail(`expected ${layer}.weight_scale_inv or .weight_scale in the files, got none`);
  const { shape } = file.info(name);
  const isOne = shape.every((size) => size === 1);
  const [rows, columns] = isOne ? [outputs, inputs] : blockOf(settings, inputs);
  const blocks = [Math.ceil(outputs / rows), Math.ceil(inputs / columns)] as const;
  const isVector = shape.length === 1 && blocks[1] === 1;
  checkPart(file, settings, name, { dtypes: floating, shape: isOne ? shape : isVector ? [blocks[0]] : blocks });
  return { name, rows, columns };
}

/**
 * Returns the size of the blocks that share a scale. Without `weight_block_size`, a block is all inputs of one output.
 */
function blockOf(settings: Settings, inputs: number): readonly [rows: number, columns: number] {
  if (settings.get("weight_block_size") === undefined) return [1, inputs];
  const sizes = settings.numbers("weight_block_size");
  if (sizes.length === 2 && sizes.every(Number.isSafeInteger)) return sizes as unknown as readonly [number, number];
  throw settings.wrong("weight_block_size", "two whole numbers", sizes);
}

function scaled(
  file: SafetensorsReader,
  layer: string,
  [outputs, inputs]: readonly [number, number],
  { name, rows, columns }: Scales,
): Tensor {
  const [scales, bytes] = [floats(file.tensor(name)), file.bytes(`${layer}.weight`)];
  const [perRow, levels] = [Math.ceil(inputs / columns), bytes.dataSync() as Uint8Array];
  const values = valuesOfBytes();
  const out = new Float32Array(outputs * inputs);
  for (let output = 0; output < outputs; output++) {
    const row = Math.floor(output / rows) * perRow;
    for (let first = 0; first < inputs; first += columns) {
      const scale = scales[row + first / columns];
      const end = output * inputs + Math.min(first + columns, inputs);
      for (let at = output * inputs + first; at < end; at++) out[at] = values[levels[at]] * scale;
    }
  }
  bytes.dispose();
  return tensor(out, { shape: [outputs, inputs] });
}
