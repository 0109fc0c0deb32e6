/** Sets of characters, as in classes, escapes and dots of regular expressions. */

/** Code points from `first` to `last`, both included. */
export type Range = readonly [first: number, last: number];
/** Ascending ranges with gaps between them. They exclude surrogates, which texts never contain alone. */
export type CodePoints = readonly Range[];

const [BEFORE_SURROGATES, AFTER_SURROGATES, LAST] = [0xd7ff, 0xe000, 0x10ffff];
export const everything: CodePoints = [
  [0, BEFORE_SURROGATES],
  [AFTER_SURROGATES, LAST],
];

export const union = (...sets: readonly CodePoints[]): CodePoints => {
  const joined: [number, number][] = [];
  for (const [first, last] of sets.flat().sort(([a], [b]) => a - b)) {
    const before = joined.at(-1);
    if (before && first <= before[1] + 1) before[1] = Math.max(before[1], last);
    else joined.push([first, last]);
  }
  return joined.some(([first, last]) => first <= BEFORE_SURROGATES && last >= AFTER_SURROGATES)
    ? intersection(joined, everything)
    : joined;
};

export const intersection = (a: CodePoints, b: CodePoints): CodePoints => {
  const common: Range[] = [];
  for (let [at, other] = [0, 0]; at < a.length && other < b.length; ) {
    const [first, last] = [Math.max(a[at][0], b[other][0]), Math.min(a[at][1], b[other][1])];
    if (first <= last) common.push([first, last]);
    if (a[at][1] < b[other][1]) at++;
    else other++;
  }
  return common;
};

/** Returns all other characters except surrogates. */
export const complement = (set: CodePoints): CodePoints => {
  const gaps: Range[] = [];
  let next = 0;
  for (const [first, last] of set) {
    if (first > next) gaps.push([next, first - 1]);
    next = last + 1;
  }
  if (next <= LAST) gaps.push([next, LAST]);
  return intersection(gaps, everything);
};

export const difference = (set: CodePoints, without: CodePoints): CodePoints => intersection(set, complement(without));

/** Returns the characters of a range in a class. */
export const rangeOf = (first: number, last = first): CodePoints => intersection([[first, last]], everything);

const known = new Map<string, CodePoints>();

/**
 * Returns the characters that match an escape or a dot. Asks JavaScript's engine, since only it has its Unicode tables.
 *
 * @param source such as `\w`, `.` or `\p{Script=Greek}`
 */
export function charactersOf(source: string): CodePoints {
  const ranges = known.get(source) ?? askedOf(source);
  known.set(source, ranges);
  return ranges;
}

/** Every character once, ascending. */
let all: string | undefined;
const units = AFTER_SURROGATES - BEFORE_SURROGATES - 1;
const SUPPLEMENTARY = 0x10000;

function askedOf(source: string): CodePoints {
  all ??= everything.map(([first, last]) => textOf(first, last)).join("");
  const found = Array.from(
    all.matchAll(new RegExp(`(?:${source})+`, "gu")),
    ({ index, 0: { length } }): Range => [codePointAt(index), codePointAt(index + length - 1)],
  );
  return intersection(found, everything);
}

function textOf(first: number, last: number): string {
  const parts: string[] = [];
  for (let start = first; start <= last; start += 4096)
    parts.push(
      String.fromCodePoint(...Array.from({ length: Math.min(4096, last + 1 - start) }, (_, at) => start + at)),
    );
  return parts.join("");
}

/** Returns the code point of the character at this index of {@link all}. */
function codePointAt(unit: number): number {
  if (unit <= BEFORE_SURROGATES) return unit;
  const point = unit + units;
  return point < SUPPLEMENTARY ? point : SUPPLEMENTARY + ((point - SUPPLEMENTARY) >> 1);
}
