/** The tensor names and row order of llama.cpp's architectures `gpt2` and `llama`. */
import { noGrad } from "../autograd/modes.ts";
import { fromArray } from "../ops/creation/tensor.ts";
import { indexSelect } from "../ops/indexing/gather.ts";
import { cat } from "../ops/join/cat.ts";
import { narrow } from "../ops/view/slice.ts";
import { QuantizedTensor } from "../quant/quantized_tensor.ts";
import type { Tensor } from "../tensor/tensor.ts";
import type { Settings } from "./settings.ts";

type Weight = Tensor | QuantizedTensor;
/** Weights by name. */
export type Weights = Readonly<Record<string, Weight>>;

/** Returns the name of each layer here and in llama.cpp. */
function layerNames({ layers }: Settings): (readonly [name: string, other: string])[] {
  const blocks = Array.from({ length: layers }, (_, at) =>
    [
      ["attentionNorm", "attn_norm"],
      ["attention.queryKeyValue", "attn_qkv"],
      ["attention.output", "attn_output"],
      ["feedForwardNorm", "ffn_norm"],
      ["feedForward.gate", "ffn_gate"],
      ["feedForward.up", "ffn_up"],
      ["feedForward.down", "ffn_down"],
    ].map(([name, other]) => [`blocks.${at}.${name}`, `blk.${at}.${other}`] as const),
  );
  return [
    ["tokenEmbedding", "token_embd"],
    ["positionEmbedding", "position_embd"],
    ...blocks.flat(),
    ["finalNorm", "output_norm"],
    ["head", "output"],
  ];
}

/** Converts a model's state to llama.cpp's tensors. Its `llama` has separate queries, keys and values. */
export function toGgufWeights(settings: Settings, state: Weights): Weights {
  const found: Record<string, Weight> = {};
  for (const [name, other] of layerNames(settings))
    for (const end of ["weight", "bias"]) {
      const value = state[`${name}.${end}`];
      if (value === undefined) continue;
      if (settings.architecture === "llama" && other.endsWith("attn_qkv"))
        for (const [letter, part] of Object.entries(splitRows(value, settings)))
          found[`${other.replace("qkv", letter)}.${end}`] = part;
      else found[`${other}.${end}`] = value;
    }
  return found;
}

/**
 *  Converts llama.cpp's tensors to a model's state. Tensors with unknown names are kept, so that loading reports them.
 */
export function fromGgufWeights(settings: Settings, weights: Weights): Weights {
  const rest = new Map(Object.entries(weights));
  const take = (name: string): Weight | undefined => {
    const value = rest.get(name);
    rest.delete(name);
    return value;
  };
  const found: Record<string, Weight> = {};
  for (const [name, other] of layerNames(settings))
    for (const end of ["weight", "bias"]) {
      const value = take(`${other}.${end}`) ?? joinedRows(other, end, take, settings);
      if (value !== undefined) found[`${name}.${end}`] = value;
    }
  return { ...found, ...Object.fromEntries(rest) };
}

const letters = ["q", "k", "v"] as const;

/**
 * In llama.cpp's `llama`, rotated pairs are adjacent rows; here they are from the two halves of a head. Row 2i + h of a
 * head there is row i + h · width / 2 here (`permute` of its `convert_hf_to_gguf.py`).
 */
function headRows(width: number, { heads }: Settings): Int32Array {
  const half = width / heads / 2;
  return Int32Array.from({ length: width }, (_, row) => {
    const [head, at] = [Math.floor(row / (2 * half)), row % (2 * half)];
    return head * 2 * half + (at >> 1) + (at & 1) * half;
  });
}

function splitRows(value: Weight, settings: Settings): Record<(typeof letters)[number], Weight> {
  const { width } = settings;
  const index = fromArray(headRows(width, settings), [width]);
  const rows = (at: number) => withRows(value, (part) => narrow(part, 0, at * width, width));
  const turned = (at: number) => withRows(rows(at), (part) => indexSelect(part, 0, index));
  return { q: turned(0), k: turned(1), v: rows(2) };
}

/** Joins the rows of queries, keys and values; undefined if one is missing or differs in shape or format. */
function joinedRows(
  other: string,
  end: string,
  take: (name: string) => Weight | undefined,
  settings: Settings,
): Weight | undefined {
  if (!other.endsWith("attn_qkv")) return undefined;
  const parts = letters.map((letter) => take(`${other.replace("qkv", letter)}.${end}`));
  const [q, k, v] = parts;
  const { width } = settings;
  if (q === undefined || k === undefined || v === undefined) return undefined;
  const isAlike = (weight: Weight) =>
    kindOf(weight) === kindOf(q) &&
    weight.shape[0] === width &&
    weight.shape.slice(1).join() === q.shape.slice(1).join();
  if (![q, k, v].every(isAlike)) return undefined;
  const back = new Int32Array(width);
  for (const [row, from] of headRows(width, settings).entries()) back[from] = row;
  const index = fromArray(back, [width]);
  const turned = (weight: Weight) => withRows(weight, (part) => indexSelect(part, 0, index));
  const all = [turned(q), turned(k), v];
  return withRows(turned(q), () => noGrad(() => cat(all.map(packedOf), { dim: 0 })));
}

const kindOf = (weight: Weight): string =>
  QuantizedTensor.isQuantized(weight) ? `quantized ${String(weight.format)}` : weight.dtype;
const packedOf = (weight: Weight): Tensor => (QuantizedTensor.isQuantized(weight) ? weight.parts.packed : weight);

/** Reorders the rows of a weight. In quantized weights, these are rows of bytes. */
function withRows(weight: Weight, change: (part: Tensor) => Tensor): Weight {
  if (!QuantizedTensor.isQuantized(weight)) return noGrad(() => change(weight));
  const packed = noGrad(() => change(weight.parts.packed));
  return new QuantizedTensor(weight.format, [packed.shape[0], ...weight.shape.slice(1)], weight.dtype, { packed });
}
