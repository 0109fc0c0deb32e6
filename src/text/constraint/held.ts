/** Forms and texts, as the program has them: what it takes to tell any process of them. */
import type { TokenConstraint, TokenMatcher } from "../../nn/generation/constraint.ts";
import { type EngineProcess, engineProcess, forgetEverywhere, retrying } from "./engine.ts";
import type { Form } from "./messages.ts";

/** What a form needs of a tokenizer. Those of `data` and `text` have it. */
export interface ConstrainedTokenizer {
  readonly vocabularySize: number;
  readonly endOfText: number | null;
  bytesOf(token: number): Uint8Array;
  /** Whether a token is no text: it never follows, but for those that end the text. */
  isSpecial?(token: number): boolean;
}

let lastId = 0;

/** Processes forget what the program has forgotten. */
const forgotten = new FinalizationRegistry<readonly ["vocabulary" | "form", number]>(([what, id]) =>
  forgetEverywhere({ kind: "forget", what, id }),
);

/** The tokens of a tokenizer as bytes; those that are no text have none. */
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
  const own = vocabularies.get(tokenizer) ?? new Vocabulary(tokenizer);
  vocabularies.set(tokenizer, own);
  return own;
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

  /** A process that knows the form. @throws {ArgumentError} for a form that can't be held to. */
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

/** A text has so many seconds of the processor at a time, and so many more for each of its tokens. */
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

  /** Tells a process of the text as it is now. */
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

  /** What ends a text may follow where the token beyond all may, also if it is text elsewhere. */
  private allows(token: number): boolean {
    if (token >= this.size) return false;
    const own = this.stops.has(token) ? this.size : token;
    return ((this.mask[own >> 5]! >>> (own & 31)) & 1) === 1;
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
