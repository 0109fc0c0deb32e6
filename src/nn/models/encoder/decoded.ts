/** Runs a language model on a batch of texts that are padded at the end. */
import { tupleOf } from "../../../core/tuples.ts";
import { tensor } from "../../../ops/creation/tensor.ts";
import { takeAlongDim } from "../../../ops/indexing/gather.ts";
import { expand } from "../../../ops/view/expand.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { tidy } from "../../../tensor/tidy.ts";
import type { Decoder } from "../decoder/decoder.ts";

/**
 * Computes the hidden states of a decoder, [batch, tokens, width]. A decoder expects padding at the start of rows, so
 * tokens are moved to the end of their rows, and the resulting states are moved back.
 *
 * @param lengths the number of tokens in each row, without padding
 */
export function decodedStates(decoder: Decoder, tokens: Tensor, lengths: readonly number[] | undefined): Tensor {
  const [batch, count] = tupleOf(tokens.shape, 2);
  if (!lengths?.some((length) => length < count)) return decoder.hiddenStates(tokens);
  return tidy(() => {
    const padding = lengths.map((length) => count - length);
    const places = (place: (at: number, row: number) => number, shape: readonly number[]) =>
      tensor(
        Int32Array.from({ length: batch * count }, (_, at) => place(at % count, Math.floor(at / count))),
        { shape: [...shape] },
      );
    const moved = places((at, row) => Math.max(0, at - padding[row]), [batch, count]);
    const states = decoder.hiddenStates(takeAlongDim(tokens, moved, { dim: 1 }), { padding });
    const back = places((at, row) => Math.min(count - 1, at + padding[row]), [batch, count, 1]);
    return takeAlongDim(states, expand(back, [...states.shape]), { dim: 1 });
  });
}
