/** Encodes chats as tokens, and marks the tokens to train on. */
import { DataError } from "../../core/errors.ts";
import type { PretrainedTokenizer } from "../../text/pretrained_tokenizer.ts";
import type { Written } from "./chats.ts";
import type { AnswerFinder, MarkedText } from "./spans.ts";

/** Tokens, some of which are targets. */
export interface Example {
  readonly tokens: Int32Array;
  /** 1 for tokens to train on. */
  readonly isTarget: Uint8Array;
}

/** Converts the lines of files to examples. */
export class Encoder {
  /** The tokens that the tokenizer puts at the start of each text. */
  private readonly leading: readonly number[];

  /** @param finder undefined for a model without a template */
  constructor(
    private readonly tokenizer: PretrainedTokenizer,
    private readonly finder: AnswerFinder | undefined,
  ) {
    const [plain, whole] = [false, true].map((addSpecialTokens) => tokenizer.encode("a", { addSpecialTokens }));
    this.leading = whole.slice(0, Math.max(0, whole.indexOf(plain[0])));
  }

  /** Encodes a line. @throws {DataError} with the line */
  examplesOf(written: Written): Example[] {
    if (written.kind === "chat") {
      const { where, messages, answers, tools } = written;
      if (!this.finder) throw new DataError("train", "noTemplate", `${where}: ${NO_TEMPLATE}`);
      return this.finder.find(where, messages, answers, tools).map((spans) => this.encode(where, spans, []));
    }
    const { where } = written;
    const [prompt, learned] = written.kind === "text" ? ["", written.text] : [written.prompt, written.completion];
    const text = prompt + learned;
    const end = this.tokenizer.endOfText;
    const { tokens, isTarget } = this.encode(where, { text, spans: [[prompt.length, text.length]] }, this.leading);
    if (end === null) return [{ tokens, isTarget }];
    return [{ tokens: Int32Array.of(...tokens, end), isTarget: Uint8Array.of(...isTarget, 1) }];
  }

  /** Marks tokens that lie completely within a span as targets. */
  private encode(where: string, { text, spans }: MarkedText, leading: readonly number[]): Example {
    const tokens = this.tokenizer.encode(text, { addSpecialTokens: false });
    const bounds = this.byteBounds(text, tokens);
    const isTarget = new Uint8Array(leading.length + tokens.length);
    for (const span of spans) {
      const [from, to] = bounds ? tokensWithin(bounds, text, span) : this.tokensBetween(where, text, tokens, span);
      isTarget.fill(1, leading.length + from, leading.length + to);
    }
    return { tokens: Int32Array.from([...leading, ...tokens]), isTarget };
  }

  /** Returns the byte offsets of tokens in a text and the end of the last; undefined if their bytes differ from it. */
  private byteBounds(text: string, tokens: readonly number[]): readonly number[] | undefined {
    const want = Buffer.from(text);
    const pieces = tokens.map((token) => this.tokenizer.bytesOf(token));
    const got = Buffer.concat(pieces);
    const added = got.length - want.length; // some encodings insert a space at the start
    if (added !== 0 && !(added === 1 && got[0] === SPACE)) return undefined;
    if (!got.subarray(added).equals(want)) return undefined;
    let end = -added;
    return [end, ...pieces.map(({ length }) => (end += length))];
  }

  /** Finds a span's tokens by encoding prefixes of the text, for encodings that change the text. */
  private tokensBetween(where: string, text: string, tokens: readonly number[], span: Span): Span {
    const counts = span.map((end) => {
      const prefix = this.tokenizer.encode(text.slice(0, end), { addSpecialTokens: false });
      if (prefix.every((token, at) => token === tokens[at])) return prefix.length;
      throw new DataError(
        "train",
        "noBorder",
        `${where}: expected token boundaries at the start and end of an answer, got a token across one`,
      );
    });
    return counts as unknown as Span;
  }
}

type Span = MarkedText["spans"][number];

const SPACE = 0x20;
const NO_TEMPLATE = "expected a model with a chat template for messages; write prompt and completion for one without";

/** Returns the first token that starts in a span of characters, and the first one after it that ends outside. */
function tokensWithin(bounds: readonly number[], text: string, [start, end]: Span): Span {
  const first = Buffer.byteLength(text.slice(0, start));
  const last = first + Buffer.byteLength(text.slice(start, end));
  const from = bounds.findIndex((bound) => bound >= first);
  const after = bounds.findIndex((bound) => bound > last);
  return [from, Math.max(from, (after < 0 ? bounds.length : after) - 1)];
}
