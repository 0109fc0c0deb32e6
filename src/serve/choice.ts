/** One of the texts that a request generates. */

import type { FinishReason, GeneratedToken } from "../nn/generation/sequence.ts";
import { StopFinder } from "../nn/generation/stop.ts";
import type { TokenStream } from "../nn/generation/token_stream.ts";
import type { ServedTokenizer } from "./served_model.ts";

/** The new text of a choice since the previous part. */
export interface Part {
  readonly choice: number;
  readonly text: string;
  readonly tokens: readonly GeneratedToken[];
  /** Why the text ended; present only in the last part. */
  readonly finishReason?: FinishReason;
}

export class Choice {
  /** The number of generated tokens. */
  tokens = 0;

  constructor(
    private readonly index: number,
    readonly stream: TokenStream,
    private readonly tokenizer: ServedTokenizer,
    private readonly stops: readonly string[],
  ) {}

  /** Yields the text in parts. Incomplete characters and possible stop sequences are held back. */
  async *parts(): AsyncGenerator<Part, void, undefined> {
    const [decoder, finder] = [this.tokenizer.decoder(), new StopFinder(this.stops)];
    let held: GeneratedToken[] = [];
    for await (const token of this.stream) {
      this.tokens++;
      held.push(token);
      const { text, found } = finder.push(decoder.push(token.token));
      if (found) return yield this.partOf(text, held, "stop");
      if (text === "") continue;
      yield this.partOf(text, held);
      held = [];
    }
    const { text, found } = finder.push(decoder.end());
    const reason = found ? "stop" : this.stream.finishReason;
    yield this.partOf(found ? text : text + finder.end(), held, reason);
  }

  private partOf(text: string, tokens: readonly GeneratedToken[], finishReason?: FinishReason): Part {
    return { choice: this.index, text, tokens, ...(finishReason && { finishReason }) };
  }
}

/** Yields the parts of all choices as they arrive. */
export async function* partsOf(choices: readonly Choice[]): AsyncGenerator<Part, void, undefined> {
  const sources = choices.map((choice) => choice.parts());
  const next = async (at: number) => ({ at, result: await sources[at].next() });
  const pending = new Map(sources.map((_, at) => [at, next(at)]));
  try {
    while (pending.size > 0) {
      const { at, result } = await Promise.race(pending.values());
      if (result.done) pending.delete(at);
      else {
        pending.set(at, next(at));
        yield result.value;
      }
    }
  } finally {
    for (const { stream } of choices) stream.cancel();
    await Promise.allSettled(pending.values());
  }
}
