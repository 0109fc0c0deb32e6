/** Constrained texts match exactly what JavaScript's RegExp with the flag `u` matches. */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { text } from "../../../src/index.ts";
import { repeats } from "../../support/repeats.ts";
import { accepts, bytes, drawn, randomFrom, regex } from "./held_to.ts";

/** Characters of one to four bytes, and those next to the limits. */
const letters = [
  "a",
  "Z",
  "0",
  "_",
  "-",
  " ",
  "\n",
  '"',
  "\\",
  "\u0000",
  "\u001f",
  "\u007f",
  "\u0080",
  "é",
  "ß",
  "ü",
  "\u07ff",
  "\u0800",
  "А",
  "я",
  "Ё",
  "中",
  "龥",
  "\u2028",
  "\ud7ff",
  "\ue000",
  "\uffff",
  "𐀀",
  "😀",
  "𝒜",
  "\u{10ffff}",
];
const letter = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...letters) },
  fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
);
const written = letter.chain((own) => {
  const point = own.codePointAt(0)!;
  const hex = point.toString(16);
  const forms = [`\\u{${hex}}`];
  if (point < 0x10000) forms.push(`\\u${hex.padStart(4, "0")}`);
  if (point < 0x100) forms.push(`\\x${hex.padStart(2, "0")}`);
  forms.push(/[\^$\\.*+?()[\]{}|/-]/.test(own) ? `\\${own === "-" ? "x2d" : own}` : own);
  return fc.constantFrom(...forms);
});
const charactersByName = fc.constantFrom(
  "\\w",
  "\\W",
  "\\d",
  "\\D",
  "\\s",
  "\\S",
  "\\p{Lu}",
  "\\P{L}",
  "\\p{Script=Greek}",
  "\\t",
);
const range = fc
  .tuple(letter, letter)
  .map((own) => own.map((each) => each.codePointAt(0)!).sort((a, b) => a - b))
  .map(([first, last]) => `\\u{${first.toString(16)}}-\\u{${last.toString(16)}}`);
const characterClass = fc
  .tuple(fc.boolean(), fc.array(fc.oneof(written, range, charactersByName), { minLength: 1, maxLength: 4 }))
  .map(([isNegated, parts]) => `[${isNegated ? "^" : ""}${parts.join("")}]`);
/** Words of few letters, which often have the same beginnings and ends. */
const words = fc
  .array(fc.string({ unit: fc.constantFrom("a", "b", "А", "[ab]", "."), minLength: 1, maxLength: 4 }), {
    minLength: 2,
    maxLength: 6,
  })
  .map((own) => `(?:${own.join("|")})`);
const { pattern } = fc.letrec<{ pattern: string }>((tie) => ({
  pattern: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    characterClass,
    written,
    charactersByName,
    words,
    fc.constantFrom(".", "[А-я]", "[äöü]", "[一-龥]", "[A-Za-zÀ-ÿ]"),
    fc.tuple(tie("pattern"), tie("pattern")).map((own) => own.join("")),
    fc.array(tie("pattern"), { minLength: 2, maxLength: 3 }).map((own) => `(?:${own.join("|")})`),
    fc
      .tuple(tie("pattern"), fc.constantFrom("?", "*", "+", "{2}", "{0,2}", "{1,3}?", "{2,}"))
      .map(([own, times]) => `(${own})${times}`),
  ),
}));

/** Lookaheads, which constrain all text that follows. */
const ahead = fc.tuple(fc.constantFrom("(?=", "(?!"), pattern, fc.constantFrom(")", "$)")).map((own) => own.join(""));
const lookingAhead = fc
  .array(
    fc.oneof(
      pattern,
      ahead,
      fc.tuple(ahead, pattern, pattern).map(([a, b, c]) => `(?:${a}${b}|${c})`),
    ),
    {
      minLength: 1,
      maxLength: 4,
    },
  )
  .map((own) => own.join(""));
/** Expressions that may have anchors at their ends. */
const anchored = fc
  .tuple(fc.constantFrom("", "^"), pattern, fc.constantFrom("", "$"), fc.constantFrom("", "a$", "(^b|c)", "(d|e$)"))
  .map(([start, own, end, other]) => `${start}${own}${end}${other === "" ? "" : `|${other}`}`);

/** Texts similar to matching ones: letters of the expression itself, some changed. */
const textsNear = async (source: string, form: Awaited<ReturnType<typeof regex>>, random: () => number) => {
  const found: string[] = ["", "a", "А", "😀"];
  for (let at = 0; at < 4; at++) {
    const own = await drawn(form, random);
    if (!own) continue;
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(own); // invalid UTF-8 is an error
    expect([source, text, new RegExp(`^(?:${source})$`, "u").test(text)]).toEqual([source, text, true]);
    const points = [...text];
    const place = Math.floor(random() * (points.length + 1));
    const other = letters[Math.floor(random() * letters.length)];
    found.push(text, points.toSpliced(place, 1, other).join(""), points.toSpliced(place, 0, other).join(""));
    found.push(points.toSpliced(place, 1).join(""));
  }
  return found;
};

test.each(["(?:(?=a)a|a)(\\u{d7ff})?", "(?=.)(.)\\u{d7ff}", "(?!b)[^a]", "(?=a)a[\\u{d000}-\\u{e000}]"])(
  "%s accepts no surrogates, which have no UTF-8",
  async (source) => {
    const form = await regex(source);
    const own = new RegExp(`^(?:${source})$`, "u");
    for (const start of ["", "a", "中"])
      for (const point of [0xd7ff, 0xd800, 0xdbff, 0xdc00, 0xdfff, 0xe000]) {
        const isSurrogate = 0xd800 <= point && point < 0xe000;
        const last = [0xe0 | (point >> 12), 0x80 | ((point >> 6) & 0x3f), 0x80 | (point & 0x3f)];
        const written = Uint8Array.from([...Buffer.from(start), ...last]);
        const isMatch = !isSurrogate && own.test(start + String.fromCodePoint(point));
        expect([start, point, await accepts(form, written)]).toEqual([start, point, isMatch]);
      }
  },
);

test("drawn expressions accept what RegExp matches, and nothing else", async () => {
  await fc.assert(
    fc.asyncProperty(fc.oneof(pattern, lookingAhead), fc.nat(), async (source, seed) => {
      const random = randomFrom(seed);
      const own = new RegExp(`^(?:${source})$`, "u");
      const form = await regex(source).catch((cause: { code?: string }) => {
        if (cause.code !== "noText") throw cause; // for expressions such as [^\W\w]
      });
      if (!form) return;
      for (const text of await textsNear(source, form, random))
        expect([source, text, await accepts(form, text)]).toEqual([source, text, own.test(text)]);
    }),
    { numRuns: repeats({ usual: 60, all: 1000 }), seed: 34 },
  );
});

test("a schema's pattern allows JSON in which a part of the text matches, escapes included", async () => {
  await fc.assert(
    fc.asyncProperty(anchored, fc.nat(), async (source, seed) => {
      const random = randomFrom(seed);
      const own = new RegExp(source, "u");
      const plain = await regex(source).catch(() => undefined);
      if (!plain) return;
      const form = await text.compileConstraint(bytes, { schema: { type: "string", pattern: source } });
      for (const near of await textsNear(source, plain, random))
        expect([source, near, await accepts(form, JSON.stringify(near))]).toEqual([source, near, own.test(near)]);
      // RegExp gives up on longer texts of nested repeats, such as ((a){1,3}?)+, and then says that they don't match.
      const said = await drawn(form, random, 24);
      if (said)
        expect([source, JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(said))]).toEqual([
          source,
          expect.stringMatching(own),
        ]);
    }),
    { numRuns: repeats({ usual: 40, all: 600 }), seed: 35 },
  );
});

test("lengths of texts count characters", async () => {
  const form = await text.compileConstraint(bytes, { schema: { type: "string", minLength: 2, maxLength: 3 } });
  await fc.assert(
    fc.asyncProperty(fc.array(letter, { maxLength: 5 }), async (own) => {
      const isRight = own.length >= 2 && own.length <= 3;
      expect([own, await accepts(form, JSON.stringify(own.join("")))]).toEqual([own, isRight]);
    }),
    { numRuns: repeats({ usual: 60, all: 500 }), seed: 36 },
  );
});

test.each(["((?=a)b)*", "((?!a)b){0,9}", "(?<=a)b", "(a)\\1", "\\ba", "a^b", "a$b", "(?i:a)", "(^a)*"])(
  "the error for %s names it",
  async (source) => {
    await expect(regex(source)).rejects.toMatchObject({
      code: "unsupported",
      message: expect.stringMatching(/without \S/),
    });
  },
);

test("an enum allows exactly its values, also if they share beginnings and ends", async () => {
  const word = fc.string({ unit: fc.constantFrom("a", "b", "А", '"', "\n"), minLength: 1, maxLength: 4 });
  const value = fc.oneof({ weight: 4, arbitrary: word }, fc.constantFrom(1, 12, -1, true, null));
  await fc.assert(
    fc.asyncProperty(fc.array(value, { minLength: 2, maxLength: 6 }), fc.nat(), async (values, seed) => {
      const random = randomFrom(seed);
      const of = (own: unknown) => ({ const: own });
      for (const schema of [
        { enum: values },
        { anyOf: values.map(of) },
        { type: "array", items: { enum: values }, minItems: 1, maxItems: 1 },
      ]) {
        const form = await text.compileConstraint(bytes, { schema });
        for (let at = 0; at < 4; at++) {
          const said = [JSON.parse(new TextDecoder().decode((await drawn(form, random))!))].flat()[0];
          expect([values, said]).toEqual([values, values.includes(said) ? said : values]);
        }
      }
    }),
    { numRuns: repeats({ usual: 25, all: 400 }), seed: 37 },
  );
});

test("texts of long repeats match, in JSON too", async () => {
  const wide = fc.constantFrom("[^a]", "[^\\n\\r]", "[\\s\\S]", ".", "[^\\x00-\\x40]", "[А-я]", "[^é]");
  await fc.assert(
    fc.asyncProperty(wide, fc.integer({ min: 60, max: 300 }), fc.nat(40), fc.nat(), async (set, most, gap, seed) => {
      const random = randomFrom(seed);
      const least = [0, 1, 32, gap, most - gap, most][seed % 6];
      const source = `${set}{${least},${seed % 7 === 0 ? "" : most}}`;
      const own = new RegExp(`^(?:${source})$`, "u");
      const plain = await regex(source);
      const json = await text.compileConstraint(bytes, { schema: { type: "string", pattern: `^${source}$` } });
      for (const length of new Set([0, 1, Math.max(0, least - 1), least, least + gap, most - 1, most, most + 1])) {
        const said = "Бb".repeat(length).slice(0, length);
        expect([source, length, await accepts(plain, said)]).toEqual([source, length, own.test(said)]);
        expect([source, length, await accepts(json, JSON.stringify(said))]).toEqual([source, length, own.test(said)]);
      }
      const said = await drawn(json, () => 0.2 * random(), 500); // ASCII
      if (said) expect(JSON.parse(new TextDecoder().decode(said))).toMatch(own);
    }),
    { numRuns: repeats({ usual: 12, all: 150 }), seed: 38 },
  );
});

test.each(["[^@]]", "a{,2}", "\\-[^\\d]{2}", "x{1"])(
  "%s is accepted, which is valid only without the flag u",
  async (source) => {
    const [form, own] = [await regex(source), new RegExp(`^(?:${source})$`)];
    expect(() => new RegExp(source, "u")).toThrow();
    for (const text of ["a]", "😀]", "@]", "a{,2}", "aa", "-é😀", "-éß", "-1a", "x{1", "x"]) {
      // Two sets match the halves of a character beyond U+FFFF, which is excluded here.
      const isWide = [...text].length < text.length;
      expect([source, text, await accepts(form, text)]).toEqual([source, text, !isWide && own.test(text)]);
    }
  },
);
