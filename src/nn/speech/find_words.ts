/** Finds the times of words in a window of audio. */
import { noGrad } from "../../autograd/modes.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { tensor } from "../../ops/creation/tensor.ts";
import { softmax } from "../../ops/softmax/softmax.ts";
import { select } from "../../ops/view/slice.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { keep, tidy } from "../../tensor/tidy.ts";
import type { PretrainedTokenizer } from "../../text/pretrained_tokenizer.ts";
import type { WhisperSettings } from "../models/whisper/settings.ts";
import type { Whisper } from "../models/whisper/whisper.ts";
import { startsOf } from "./align.ts";
import { TIME_UNIT } from "./segments.ts";
import { type TimedWord, wordsOf } from "./words.ts";

/** A window, and the tokens whose words are to be aligned. */
export interface AlignmentInputs {
  /** The encoder's states, [1, audioPositions, width]. */
  readonly states: Tensor;
  /** The tokens of text in the window. */
  readonly tokens: readonly number[];
  /** The prompt from the start token on. */
  readonly start: readonly number[];
  /** The number of frames with audio. */
  readonly frames: number;
  readonly language: string | undefined;
  readonly tokenizer: PretrainedTokenizer;
  readonly settings: WhisperSettings;
}

/** Returns the words of a window, with times in seconds from its start. */
export async function findWords(model: Whisper, inputs: AlignmentInputs): Promise<TimedWord[]> {
  const { tokens, start, language, tokenizer, settings } = inputs;
  const { endToken, medianFilterWidth: filterWidth } = settings;
  if (tokens.length === 0) return [];
  const { heads, probabilities } = await attentionOf(model, inputs);
  const times = startsOf(heads, { first: start.length, end: start.length + 1 + tokens.length, filterWidth });
  const words = wordsOf([...tokens, endToken], tokenizer, { language, endToken });
  let at = 0;
  return words.slice(0, -1).map(({ word, tokens: part }) => {
    const first = at;
    at += part.length;
    const probability = probabilities.slice(first, at).reduce((sum, value) => sum + value, 0) / part.length;
    return { word, tokens: part, start: times[first] * TIME_UNIT, end: times[at] * TIME_UNIT, probability };
  });
}

/** Runs the decoder on known tokens, and returns the attention of each alignment head and each token's probability. */
async function attentionOf(model: Whisper, { states, tokens, start, frames, settings }: AlignmentInputs) {
  const { noTimestampsToken, endToken } = settings;
  const all = [...start, noTimestampsToken, ...tokens, endToken];
  const chosen = settings.alignmentHeads ?? laterHeads(model);
  const found = new Map<number, Tensor>();
  using chances = noGrad(() =>
    tidy(() => {
      const logits = model.decodeWith(tensor([all], { dtype: "int32" }), states, {
        onCross(layer, x, { keys }) {
          if (!chosen.some(([each]) => each === layer)) return;
          const positions = Math.max(1, Math.floor(frames / 2));
          const weights = model.blocks[layer].crossAttention.probabilities(x, keys, positions);
          found.set(layer, keep(toDType(weights, "float32")));
        },
      });
      return softmax(toDType(select(logits, 0, 0), "float32"), 1);
    }),
  );
  const rows = await rowsOf(chances);
  const layers = new Map<number, Float64Array[][]>();
  for (const [layer, weights] of found) {
    layers.set(layer, await Promise.all(Array.from({ length: weights.shape[1] }, (_, head) => headOf(weights, head))));
    weights.dispose();
  }
  const probabilities = tokens.map((token, at) => {
    const row = rows[start.length + at].subarray(0, endToken);
    return row[token] / row.reduce((sum, value) => sum + value, 0);
  });
  return { heads: chosen.map(([layer, head]) => layers.get(layer)![head]), probabilities };
}

async function headOf(weights: Tensor, head: number): Promise<Float64Array[]> {
  using one = noGrad(() => tidy(() => select(select(weights, 0, 0), 0, head)));
  return rowsOf(one);
}

async function rowsOf(matrix: Tensor): Promise<Float64Array[]> {
  const values = (await matrix.data()) as Float32Array;
  const [rows, columns] = matrix.sizes(2);
  return Array.from({ length: rows }, (_, row) =>
    Float64Array.from(values.subarray(row * columns, (row + 1) * columns)),
  );
}

/** Without a list of heads, all heads of the later half of the layers are used for alignment. */
function laterHeads({ description: { decoder } }: Whisper): (readonly [layer: number, head: number])[] {
  const first = Math.floor(decoder.layers / 2);
  return Array.from({ length: decoder.layers - first }, (_, at) =>
    Array.from({ length: decoder.heads }, (_, head) => [first + at, head] as const),
  ).flat();
}
