/** The result of the encoder of an {@link EncoderDecoder}. */
import { tupleOf } from "../../../core/tuples.ts";
import { unsqueeze } from "../../../ops/view/squeeze.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { keep } from "../../../tensor/tidy.ts";
import type { KeysAndValues } from "../../cache/store.ts";
import { textMask } from "../encoder/encoder.ts";
import type { CrossAttention } from "./attention.ts";

/**
 * The hidden states of texts, which the decoder attends to. While texts are generated, it keeps the keys and values of
 * each block, so that they are computed once. `dispose` frees everything.
 */
export class EncodedTexts implements Disposable {
  /** The hidden states, [texts, tokens, width]. */
  readonly states: Tensor;
  /** The number of tokens of each text; the others are padding. */
  readonly lengths: readonly number[];
  /** @internal bool [texts, 1, 1, tokens], true = a token of the text; undefined if no text has padding. */
  readonly mask: Tensor<"bool"> | undefined;
  readonly #held: KeysAndValues[] = [];

  /** @internal */
  constructor(states: Tensor, lengths: readonly number[] | undefined) {
    const [texts, count] = tupleOf(states.shape, 3);
    this.states = states;
    this.lengths = lengths ?? Array<number>(texts).fill(count);
    const hasPadding = this.lengths.some((length) => length < count);
    this.mask = hasPadding ? unsqueeze(unsqueeze(textMask(this.lengths, count), 1), 1) : undefined;
  }

  /** @internal Returns the keys and values of a block, and keeps them for the next call if `isKept`. */
  held(index: number, attention: CrossAttention, isKept: boolean): KeysAndValues {
    const found = this.#held[index];
    if (found && isKept) return found;
    const made = attention.keysAndValues(this.states);
    if (isKept) this.#held[index] = { keys: keep(made.keys), values: keep(made.values) };
    return made;
  }

  dispose(): void {
    for (const { keys, values } of this.#held.splice(0)) {
      keys.dispose();
      values.dispose();
    }
    this.mask?.dispose();
    this.states.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}
