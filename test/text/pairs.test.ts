/** Pairs of texts and the places of tokens, against Hugging Face's `tokenizers`: scripts/fixtures/models/pairs.py. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { text } from "../../src/index.ts";

interface Case {
  readonly text: string;
  readonly pair: string | null;
  readonly maxTokens: number | null;
  readonly tokens: number[];
  readonly types: number[];
  readonly spans: readonly (readonly [text: 0 | 1, start: number, end: number] | null)[];
}
interface Kind {
  readonly base: string;
  readonly post_processor: object;
  readonly added_tokens: readonly object[];
  readonly cases: readonly Case[];
}

const folder = join(packageRoot, "test", "fixtures", "text");
const read = (name: string) => JSON.parse(readFileSync(join(folder, `${name}.json`), "utf8"));
const kinds: Record<string, Kind> = read("pairs");

const tokenizerOf = ({ base, post_processor, added_tokens }: Kind): text.PretrainedTokenizer => {
  const { tokenizer, config } = read(base);
  return new text.PretrainedTokenizer({ ...tokenizer, post_processor, added_tokens }, { config });
};

/** The graphemes that a part of a text touches. */
function whole(own: string, start: number, end: number): number[] {
  const graphemes = [...new Intl.Segmenter("en", { granularity: "grapheme" }).segment(own)];
  const first = graphemes.findLast(({ index }) => index <= start)!;
  const last = graphemes.findLast(({ index }) => index < end) ?? first;
  return start === end ? [start, end] : [first.index, last.index + last.segment.length];
}

describe.each(Object.keys(kinds))("pairs of texts by the tokenizer %s", (name) => {
  const tokenizer = tokenizerOf(kinds[name]);
  const { cases } = kinds[name];
  const inputs = ({ text, pair, maxTokens }: Case) =>
    tokenizer.encodeInputs("test", text, { pair: pair ?? undefined, maxTokens: maxTokens ?? undefined });

  test("tokens and their types equal transformers'", () => {
    const got = cases.map((own) => inputs(own)).map(({ tokens, tokenTypes }) => ({ tokens, tokenTypes }));
    expect(got).toEqual(cases.map(({ tokens, types }) => ({ tokens, tokenTypes: types })));
    for (const { text, pair, maxTokens, tokens, types } of cases)
      if (pair !== null)
        expect(tokenizer.encodePair(text, pair, { maxTokens: maxTokens ?? undefined })).toEqual({
          tokens,
          tokenTypes: types,
        });
  });

  test("the positions of tokens equal transformers'", () => {
    for (const own of cases) {
      const { origins, spans } = inputs(own);
      const places = [spans(0), own.pair === null ? [] : spans(1)];
      const got = origins.map((origin) => {
        if (!origin) return null;
        const { start, end } = places[origin[0]][origin[1]];
        return [origin[0], start, end];
      });
      const texts = [own.text, own.pair ?? ""];
      // in `tokenizers`, a combining mark after a space has the next character's position, and graphemes are split
      const wanted = own.spans.map((span, at) => {
        const isSpace = span !== null && tokenizer.decode([own.tokens[at]], { skipSpecialTokens: false }).trim() === "";
        return span && (isSpace ? got[at]! : [span[0], ...whole(texts[span[0]], span[1], span[2])]);
      });
      expect(got).toEqual(wanted as typeof got);
    }
  });
});

test("a limit below the number of special tokens is an error", () => {
  const tokenizer = tokenizerOf(kinds["bert"]);
  expect(() => tokenizer.encodePair("a", "b", { maxTokens: 2 })).toThrow(
    "expected maxTokens to be at least 3, the number of special tokens, got 2",
  );
  expect(tokenizer.encodePair("a", "b", { addSpecialTokens: false }).tokens).toHaveLength(2);
});
