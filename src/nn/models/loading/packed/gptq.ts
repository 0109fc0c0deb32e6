/**
 * Reads GPTQ's files. A layer has `qweight` int32 [inputs · bits / 32, outputs], `qzeros` int32 [groups, outputs · bits
 * / 32], `scales` [groups, outputs], and `g_idx` int32 [inputs], the group of each input. Levels and zeros are packed
 * from the lowest bit of each word on; those of 3 bits may cross from one word to the next. Version 1 stores zeros
 * minus 1; version 2 stores them unchanged.
 */
import type { SafetensorsReader } from "../../../../io/safetensors/file.ts";
import { unpackLevels } from "../../../../quant/affine/pack.ts";
import type { AffineBits } from "../../../../quant/formats.ts";
import type { Settings } from "../settings.ts";
import { elements, floats } from "./elements.ts";
import { formatOf, type Groups, weightOf } from "./groups.ts";
import {
  bytesOfParts,
  checkPart,
  floating,
  integers,
  layersWith,
  matrixOf,
  type PackedLayer,
  type Packing,
} from "./source.ts";

const bitsOfLevels: readonly number[] = [2, 3, 4, 8];
const versions: Readonly<Record<string, { readonly offset: number }>> = { gptq: { offset: 1 }, gptq_v2: { offset: 0 } };

/** Reads a folder that was quantized by GPTQ. */
export const gptq: Packing = (file, settings) => {
  const bits = settings.whole("bits");
  if (!bitsOfLevels.includes(bits)) throw settings.wrong("bits", `one of ${bitsOfLevels.join(", ")}`, bits);
  const words = settings.textIfAny("pack_dtype") ?? "int32";
  if (words !== "int32") throw settings.wrong("pack_dtype", "int32, the only supported value", words);
  const version = settings.textIfAny("checkpoint_format") ?? settings.textIfAny("format") ?? "gptq";
  if (!Object.hasOwn(versions, version))
    throw settings.wrong("checkpoint_format", Object.keys(versions).join(" or "), version);
  const options = { bits: bits as AffineBits, groupSize: groupSizeOf(settings), ...versions[version] };
  return new Map(layersWith(file, "qweight").map((name) => [name, layerOf(file, name, settings, options)]));
};

/** Returns the number of inputs in a group; −1 for all of them. */
export function groupSizeOf(settings: Settings): number {
  return settings.get("group_size") === -1 ? -1 : settings.whole("group_size");
}

interface GptqOptions {
  readonly bits: AffineBits;
  readonly groupSize: number;
  /** Added to the stored zeros. */
  readonly offset: number;
}

function layerOf(file: SafetensorsReader, name: string, settings: Settings, options: GptqOptions): PackedLayer {
  const { bits } = options;
  const has = (part: string) => file.has(`${name}.${part}`);
  const parts = ["qweight", "qzeros", "scales", "g_idx"].filter(has).map((part) => `${name}.${part}`);
  const [rows, outputs] = matrixOf(file, settings, `${name}.qweight`, integers);
  if ((rows * 32) % bits !== 0)
    throw settings.fail(`expected ${name}.qweight of a multiple of ${bits} rows, got ${rows}`);
  const inputs = (rows * 32) / bits;
  const [count] = matrixOf(file, settings, `${name}.scales`, floating);
  checkPart(file, settings, `${name}.scales`, { dtypes: floating, shape: [count, outputs] });
  checkPart(file, settings, `${name}.qzeros`, { dtypes: integers, shape: [count, (outputs * bits) / 32] });
  if (has("g_idx")) checkPart(file, settings, `${name}.g_idx`, { dtypes: integers, shape: [inputs] });
  const groupOf = has("g_idx") ? elements(file.tensor(`${name}.g_idx`)) : adjacent(inputs, options.groupSize);
  const wrong = groupOf.find((group) => group < 0 || group >= count);
  if (wrong !== undefined) throw settings.fail(`expected ${count} groups of inputs of ${name}, got group ${wrong}`);
  const groups = (): Groups => ({ outputs, inputs, bits, groupOf, zeros: zerosIn(file, name, options) });
  return {
    parts,
    describe() {
      const format = formatOf(groups());
      const stored = { shape: [outputs, inputs], byteLength: bytesOfParts(file, parts), isComputed: true };
      return { ...stored, type: `GPTQ ${bits} bits`, dtype: format ? null : "float32", format };
    },
    read: () => {
      const words = elements(file.tensor(`${name}.qweight`));
      return weightOf(groups(), transposed(words, rows, outputs), floats(file.tensor(`${name}.scales`)));
    },
  };
}

function zerosIn(file: SafetensorsReader, name: string, { bits, offset }: GptqOptions): Uint8Array {
  const words = elements(file.tensor(`${name}.qzeros`));
  const zeros = new Uint8Array((words.length * 32) / bits);
  unpackLevels(new Uint32Array(words.buffer), bits, zeros);
  const mask = 2 ** bits - 1;
  return zeros.map((zero) => (zero + offset) & mask);
}

/** Returns the group of each input, if groups are adjacent inputs. */
export const adjacent = (inputs: number, groupSize: number): Int32Array =>
  Int32Array.from({ length: inputs }, (_, input) => (groupSize === -1 ? 0 : Math.floor(input / groupSize)));

/** Transposes words [rows, columns] to [columns, rows]. */
function transposed(words: Int32Array, rows: number, columns: number): Uint32Array {
  const out = new Uint32Array(words.length);
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) out[column * rows + row] = words[row * columns + column];
  return out;
}
