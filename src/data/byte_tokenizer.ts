import { describeValue } from "../core/describe.ts";
import { ArgumentError } from "../core/errors.ts";
import { expectNothing } from "../core/parameters.ts";
import { checkText, decodeAll, PrintedTokenizer, type SpecialTokens, TextStream, type Tokenizer } from "./tokenizer.ts";

const VALUES = 256;

/**
 * A tokenizer whose tokens are the bytes of UTF-8. It has no end-of-text token; a newline separates documents.
 *
 * @example
 * new ByteTokenizer().encode("né"); // Uint8Array [110, 195, 169]
 */
export class ByteTokenizer extends PrintedTokenizer implements Tokenizer {
  readonly name = "bytes";
  readonly vocabularySize: number = VALUES;
  readonly endOfText = null;
  readonly separator: number = "\n".charCodeAt(0);
  private readonly bytes = Uint8Array.from({ length: VALUES }, (_, byte) => byte);
  private readonly encoder = new TextEncoder();

  constructor();
  constructor(...values: unknown[]) {
    super();
    expectNothing("ByteTokenizer", values);
  }

  encode(text: string, _options?: SpecialTokens): Uint8Array {
    return this.encoder.encode(checkText("ByteTokenizer", text));
  }

  decode(tokens: Iterable<number>): string {
    return decodeAll("ByteTokenizer", this.decoder(), tokens);
  }

  bytesOf(token: number): Uint8Array {
    if (Number.isInteger(token) && token >= 0 && token < VALUES) return this.bytes.subarray(token, token + 1);
    throw new ArgumentError(
      "ByteTokenizer",
      "unknownToken",
      `expected a token from 0 to 255, got ${describeValue(token)}`,
    );
  }

  decoder(_options?: SpecialTokens): TextStream {
    return new TextStream((token) => this.bytesOf(token));
  }
}
