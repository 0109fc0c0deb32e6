/** The state of constraints and texts. The program keeps it, and can send it to any process. */

import { type EngineProcess, engineProcess, forgetEverywhere, retrying } from "./engine.ts";
import type { Form } from "./messages.ts";
import type { TokenConstraint, TokenMatcher } from "./token_constraint.ts";

/** The methods of a tokenizer that constraints need. All tokenizers of `data` and `text` have them. */
export interface ConstrainedTokenizer {
  readonly vocabularySize: number;
  readonly endOfText: number | null;
  bytesOf(token: number): Uint8Array;
  /** Whether a token is special. Special tokens are never allowed, except those that end the text. */
  isSpecial?(token: number): boolean;
}

let lastId = 0;

/** Makes processes forget objects that the program no longer references. */
const forgotten = new FinalizationRegistry<readonly ["vocabulary" | "form", number]>(([what, id]) =>
  forgetEverywhere({ kind: "forget", what, id }),
);

/** The bytes of a tokenizer's tokens; special tokens have none. */
class Vocabulary {
  readonly id = ++lastId;
  readonly size: number;
  private readonly bytes: Uint8Array;
  private readonly ends: Uint32Array;

  constructor(tokenizer: ConstrainedTokenizer) {
    const { vocabularySize, endOfText } = tokenizer;
    const none = new Uint8Array();
    const isText = (token: number) => token !== endOfText && !tokenizer.isSpecial?.(token);
    const tokens = Array.from({ length: vocabularySize }, (_, token) =>
      isText(token) ? tokenizer.bytesOf(token) : none,
    );
    this.size = vocabularySize;
    this.bytes = Buffer.concat(tokens);
    let end = 0;
    this.ends = Uint32Array.from(tokens, ({ length }) => (end += length));
    forgotten.register(this, ["vocabulary", this.id]);
  }

  tell(engine: EngineProcess): Promise<unknown> {
    const { id, bytes, ends } = this;
    return engine.know(this, { kind: "vocabulary", id, bytes, ends });
  }
}

const vocabularies = new WeakMap<ConstrainedTokenizer, Vocabulary>();

function vocabularyOf(tokenizer: ConstrainedTokenizer): Vocabulary {
  const vocabulary = vocabularies.get(tokenizer) ?? new Vocabulary(tokenizer);
  vocabularies.set(tokenizer, vocabulary);
  return vocabulary;
}

export class HeldForm implements TokenConstraint {
  readonly id = ++lastId;
  readonly vocabulary: Vocabulary;
  private engine: EngineProcess | undefined;

  constructor(
    tokenizer: ConstrainedTokenizer,
    private readonly form: Form,
  ) {
    this.vocabulary = vocabularyOf(tokenizer);
    forgotten.register(this, ["form", this.id]);
  }

  /** Returns a process that has the constraint. @throws {ArgumentError} if it is not supported. */
  ready(): Promise<EngineProcess> {
    return retrying(async () => {
      const engine = this.engine?.isAlive ? this.engine : engineProcess();
      await this.vocabulary.tell(engine);
      await engine.know(this, { kind: "form", id: this.id, vocabulary: this.vocabulary.id, form: this.form });
      this.engine = engine;
      return engine;
    });
  }

  async start(stopTokens: ReadonlySet<number>): Promise<TokenMatcher> {
    const text = new HeldText(this, stopTokens);
    await text.begin();
    return text;
  }
}

/** Seconds of CPU time per task of a text, plus seconds for each of its tokens. */
const [AT_ONCE, EACH_TOKEN] = [5, 0.25];

class HeldText implements TokenMatcher {
  private readonly id = ++lastId;
  private readonly tokens: number[] = [];
  private readonly size: number;
  private engine: EngineProcess | undefined;
  private mask: Int32Array = new Int32Array();
  private seconds = AT_ONCE;

  constructor(
    private readonly form: HeldForm,
    private readonly stops: ReadonlySet<number>,
  ) {
    this.size = form.vocabulary.size;
  }

  /** Sends the current text to a process. */
  begin(): Promise<void> {
    const { id, form, tokens } = this;
    return retrying(async () => {
      const engine = await form.ready();
      const seconds = AT_ONCE + tokens.length * EACH_TOKEN;
      this.mask = (await engine.ask({ kind: "start", id, of: form.id, tokens }, seconds)).mask!;
      this.engine = engine;
    });
  }

  async accept(token: number): Promise<void> {
    this.tokens.push(token);
    const { id, engine } = this;
    await retrying(async () => {
      if (!engine?.isAlive) return this.begin();
      const { mask, seconds } = await engine.ask({ kind: "accept", id, token }, this.seconds);
      this.mask = mask!;
      this.seconds = Math.min(AT_ONCE, Math.max(0, this.seconds - seconds) + EACH_TOKEN);
    });
  }

  /** Whether a token is allowed. Tokens that end a text are allowed when the additional end token is. */
  private allows(token: number): boolean {
    if (token >= this.size) return false;
    const place = this.stops.has(token) ? this.size : token;
    return ((this.mask[place >> 5] >>> (place & 31)) & 1) === 1;
  }

  get isDone(): boolean {
    for (let token = 0; token < this.size; token++) if (this.allows(token)) return false;
    return true;
  }

  forbid(scores: Float64Array): void {
    for (let token = 0; token < scores.length; token++) if (!this.allows(token)) scores[token] = -Infinity;
  }

  [Symbol.dispose](): void {
    if (this.engine?.isAlive) this.engine.forget({ kind: "forget", what: "text", id: this.id });
  }
}
