/**
 * Reads AWQ's files. A layer has `qweight` int32 [inputs, outputs / 8], `qzeros` int32 [groups, outputs / 8] and
 * `scales` [groups, outputs]. Each 32-bit word packs the levels of eight adjacent outputs. From the lowest bits on,
 * they belong to outputs 0, 2, 4, 6, 1, 3, 5 and 7.
 *
 * Source: J. Lin et al., "AWQ: activation-aware weight quantization for LLM compression and acceleration", 2024; the
 * layout matches the package `autoawq` for `version: "gemm"`.
 */
import { lastElement } from "../../../../core/collections.ts";
import type { SafetensorsReader } from "../../../../io/safetensors/file.ts";
import type { Settings } from "../settings.ts";
import { elements, floats } from "./elements.ts";
import { adjacent, groupSizeOf } from "./gptq.ts";
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

const BITS = 4;
const PER_WORD = 8;
const outputsInWord = [0, 2, 4, 6, 1, 3, 5, 7] as const;

/** Versions with this layout; the names come from kernels that read it. */
const versions: readonly string[] = ["gemm", "exllama", "ipex"];

/** Reads a folder that was quantized by AWQ. */
export const awq: Packing = (file, settings) => {
  const bits = settings.wholeIfAny("bits") ?? settings.whole("w_bit");
  if (bits !== BITS) throw settings.wrong("bits", `${BITS}, the only supported value`, bits);
  const version = (settings.textIfAny("version") ?? "gemm").toLowerCase();
  if (!versions.includes(version)) throw settings.wrong("version", versions.join(", "), version);
  const size = settings.get("group_size") === undefined ? settings.whole("q_group_size") : groupSizeOf(settings);
  return new Map(layersWith(file, "qweight").map((name) => [name, layerOf(file, name, settings, size)]));
};

function layerOf(file: SafetensorsReader, name: string, settings: Settings, groupSize: number): PackedLayer {
  const parts = ["qweight", "qzeros", "scales"].map((part) => `${name}.${part}`);
  const [inputs, columns] = matrixOf(file, settings, `${name}.qweight`, integers);
  if (inputs % PER_WORD !== 0)
    throw settings.fail(`expected ${name}.qweight to have a multiple of ${PER_WORD} rows, got ${inputs}`);
  const outputs = columns * PER_WORD;
  const groupOf = adjacent(inputs, groupSize);
  const count = inputs === 0 ? 0 : lastElement(groupOf) + 1;
  checkPart(file, settings, `${name}.scales`, { dtypes: floating, shape: [count, outputs] });
  checkPart(file, settings, `${name}.qzeros`, { dtypes: integers, shape: [count, columns] });
  const groups = (): Groups => {
    const zeros = levelsOf(elements(file.tensor(`${name}.qzeros`)));
    return { outputs, inputs, bits: BITS, groupOf, zeros };
  };
  return {
    parts,
    describe() {
      const format = formatOf(groups());
      const stored = { shape: [outputs, inputs], byteLength: bytesOfParts(file, parts), isComputed: true };
      return { ...stored, type: "AWQ 4 bits", dtype: format ? null : "float32", format };
    },
    read: () => {
      const words = elements(file.tensor(`${name}.qweight`));
      return weightOf(groups(), packedByInputs(words, inputs, outputs), floats(file.tensor(`${name}.scales`)));
    },
  };
}

/** Unpacks levels, in the order of outputs. */
function levelsOf(words: Int32Array): Uint8Array {
  const levels = new Uint8Array(words.length * PER_WORD);
  for (let at = 0; at < words.length; at++)
    for (let place = 0; place < PER_WORD; place++)
      levels[at * PER_WORD + outputsInWord[place]] = (words[at] >>> (BITS * place)) & 15;
  return levels;
}

/** Repacks words [inputs, outputs / 8] along the inputs, as [outputs, inputs / 8]. */
function packedByInputs(words: Int32Array, inputs: number, outputs: number): Uint32Array {
  const [columns, rowWords] = [outputs / PER_WORD, inputs / PER_WORD];
  const packed = new Uint32Array(outputs * rowWords);
  for (let column = 0; column < columns; column++)
    for (let at = 0; at < rowWords; at++)
      for (let place = 0; place < PER_WORD; place++) {
        let word = 0;
        for (let input = 0; input < PER_WORD; input++) {
          const level = words[(at * PER_WORD + input) * columns + column] >>> (BITS * place);
          word |= (level & 15) << (BITS * input);
        }
        packed[(column * PER_WORD + outputsInWord[place]) * rowWords + at] = word;
      }
  return packed;
}
