/**
 * Reads GPT-OSS's experts. `gate_up_proj_blocks` uint8 [experts, rows, groups, 16] has the 4-bit levels of 32 inputs in
 * each group, the even one in the low half of a byte; `gate_up_proj_scales` uint8 [experts, rows, groups] has their
 * exponents. `down_proj` is stored likewise.
 *
 * Source: Open Compute Project, "OCP microscaling formats (MX) specification", 2023; the layout matches Hugging Face's
 * `convert_moe_packed_tensors`.
 */
import { noGrad } from "../../../../autograd/modes.ts";
import type { SafetensorsReader } from "../../../../io/safetensors/file.ts";
import { tensor } from "../../../../ops/creation/tensor.ts";
import { QuantizedTensor } from "../../../../quant/quantized_tensor.ts";
import { blocksOfWords } from "../../../../quant/words.ts";
import { keep } from "../../../../tensor/tidy.ts";
import type { Settings } from "../settings.ts";
import { bytesOfParts, checkPart, type PackedLayer, type Packing } from "./source.ts";

const [BLOCKS, SCALES] = ["_blocks", "_scales"];
/** Bytes of a group. */
const BYTES = 16;

/** Reads a folder whose experts are quantized to MXFP4. */
export const mxfp4: Packing = (file, settings) => {
  const names = file.names.filter((name) => name.endsWith(BLOCKS)).map((name) => name.slice(0, -BLOCKS.length));
  return new Map(names.map((name) => [name, layerOf(file, name, settings)]));
};

function layerOf(file: SafetensorsReader, name: string, settings: Settings): PackedLayer {
  const parts = [`${name}${BLOCKS}`, `${name}${SCALES}`] as const;
  const { shape } = file.info(parts[0]);
  const [experts = 0, rows = 0, groups = 0] = shape;
  checkPart(file, settings, parts[0], { dtypes: ["U8"], shape: [experts, rows, groups, BYTES] });
  checkPart(file, settings, parts[1], { dtypes: ["U8"], shape: [experts, rows, groups] });
  const whole = [experts, rows, groups * BYTES * 2];
  return {
    parts,
    describe: () => ({
      shape: whole,
      byteLength: bytesOfParts(file, parts),
      isComputed: true,
      type: "MXFP4",
      dtype: null,
      format: "mxfp4",
    }),
    read() {
      const [blocks, scales] = [file.tensor(parts[0]), file.tensor(parts[1])];
      const bytes = Uint8Array.from(noGrad(() => blocks.dataSync()) as ArrayLike<number>);
      const words = tensor(new Uint32Array(bytes.buffer), { shape: [experts, rows, groups * (BYTES / 4)] });
      const packed = keep(blocksOfWords(words, scales));
      for (const read of [blocks, scales, words]) read.dispose();
      return new QuantizedTensor("mxfp4", whole, "float32", { packed });
    },
  };
}
