/** Operators on strings. */
import { messageOf } from "../../core/causes.ts";
import { tensor as tensorOf } from "../../ops/creation/tensor.ts";
import { broadcastShapes } from "../../tensor/shape.ts";
import { type Call, type Operator, type Operators, Results, type Value } from "../call.ts";
import { NodeProblem } from "../errors.ts";
import { isStrings, type OnnxStrings, stringsOf } from "../strings.ts";
import { int64 } from "./axes.ts";

/** Returns, for each element of a broadcast shape, its index in a tensor of the original shape. */
function placesIn(shape: readonly number[], result: readonly number[]): number[] {
  let places = [0];
  const [offset, strides] = [result.length - shape.length, stridesOf(shape)];
  for (const [axis, size] of result.entries()) {
    const own = axis < offset ? 1 : shape[axis - offset];
    const stride = own === 1 ? 0 : strides[axis - offset];
    places = places.flatMap((place) => Array.from({ length: size }, (_, at) => place + at * stride));
  }
  return places;
}

const stridesOf = (shape: readonly number[]): number[] =>
  shape.map((_, axis) => shape.slice(axis + 1).reduce((product, size) => product * size, 1));

function concat(call: Call): OnnxStrings {
  const [a, b] = [call.strings(0), call.strings(1)];
  const shape = broadcastShapes("StringConcat", a.shape, b.shape);
  const [left, right] = [placesIn(a.shape, shape), placesIn(b.shape, shape)];
  return stringsOf(
    left.map((at, index) => a.strings[at] + b.strings[right[index]]),
    shape,
  );
}

/** Splits like Python's `str.split`: without a delimiter, at runs of whitespace; at most `most` times. */
function parts(text: string, delimiter: string, most: number): string[] {
  const list: string[] = [];
  let rest = delimiter === "" ? text.trimStart() : text;
  const pattern = delimiter === "" ? /\s+/ : undefined;
  while (rest !== "" || delimiter !== "") {
    const at = list.length === most ? -1 : pattern ? rest.search(pattern) : rest.indexOf(delimiter);
    if (at < 0) return rest === "" && delimiter === "" ? list : [...list, rest];
    list.push(rest.slice(0, at));
    rest = pattern ? rest.slice(at).trimStart() : rest.slice(at + delimiter.length);
  }
  return list;
}

/** Splits strings. Returns the parts, padded along a new axis to the longest list, and the number of parts. */
function split(call: Call): Results {
  const x = call.strings(0);
  const [delimiter, most] = [call.attributes.text("delimiter", ""), call.attributes.number("maxsplit", -1)];
  const lists = x.strings.map((each) => parts(each, delimiter, most < 0 ? Number.POSITIVE_INFINITY : most));
  const longest = lists.reduce((length, list) => Math.max(length, list.length), 0);
  const padded = lists.flatMap((list) => [...list, ...new Array<string>(longest - list.length).fill("")]);
  const lengths = int64(
    lists.map(({ length }) => length),
    x.shape,
  );
  return new Results(stringsOf(padded, [...x.shape, longest]), lengths);
}

/** Matches whole strings. Patterns have RE2's syntax; leading flags such as `(?i)` become JavaScript's flags. */
function fullMatch(call: Call): Value {
  const x = call.strings(0);
  const pattern = call.attributes.text("pattern");
  const [, flags = "", body = pattern] = /^\(\?([ims]+)\)(.*)$/s.exec(pattern) ?? [];
  let expression: RegExp;
  try {
    expression = new RegExp(`^(?:${body})$`, `u${flags}`);
  } catch (error) {
    throw new NodeProblem(`attribute pattern: ${messageOf(error)}`);
  }
  return tensorOf(
    x.strings.map((each) => expression.test(each)),
    { shape: [...x.shape], dtype: "bool" },
  );
}

const cases: Readonly<Record<string, (text: string) => string>> = {
  LOWER: (text) => text.toLowerCase(),
  NONE: (text) => text,
  UPPER: (text) => text.toUpperCase(),
};

/** Removes stop words from a vector or row, and changes the case. If no string remains, returns one empty string. */
function normalize(call: Call): OnnxStrings {
  const x = call.strings(0);
  const { attributes } = call;
  const isRow = x.shape.length === 2 && x.shape[0] === 1;
  if (x.shape.length !== 1 && !isRow) throw new NodeProblem(`expected [n] or [1, n] strings, got [${x.shape}]`);
  const action = attributes.text("case_change_action", "NONE");
  const change = Object.hasOwn(cases, action) ? cases[action] : undefined;
  if (!change) throw new NodeProblem(`attribute case_change_action: expected LOWER, UPPER or NONE, got ${action}`);
  const isSensitive = attributes.flag("is_case_sensitive");
  const folded = (text: string) => (isSensitive ? text : text.toLowerCase());
  const stops = new Set((attributes.texts("stopwords") ?? []).map(folded));
  const kept = x.strings.filter((each) => !stops.has(folded(each))).map(change);
  const list = kept.length === 0 ? [""] : kept;
  return stringsOf(list, isRow ? [1, list.length] : [list.length]);
}

type Item = string | number;

/** Returns the elements and the shape of a tensor of strings or integers. */
function itemsOf(call: Call): { readonly items: readonly Item[]; readonly shape: readonly number[] } {
  const value = call.inputs[0];
  if (isStrings(value)) return { items: value.strings, shape: value.shape };
  return { items: call.numbers(0), shape: call.tensor(0).shape };
}

/** Returns the output column of each n-gram in the pool. */
function poolOf(call: Call): ReadonlyMap<string, number> {
  const { attributes } = call;
  const pool: readonly Item[] = attributes.texts("pool_strings") ?? attributes.numbers("pool_int64s") ?? [];
  const starts = attributes.numbers("ngram_counts") ?? [];
  const columns = attributes.numbers("ngram_indexes") ?? [];
  const places = new Map<string, number>();
  let gram = 0;
  for (const [index, start] of starts.entries())
    for (let at = start; at + index < (starts[index + 1] ?? pool.length); at += index + 1)
      places.set(keyOf(pool.slice(at, at + index + 1)), columns[gram++] ?? 0);
  return places;
}

const keyOf = (items: readonly Item[]): string => JSON.stringify(items);

/** Counts the n-grams of each row, skipping up to `max_skip_count` items at a time. Unigrams are counted once. */
function tfIdf(call: Call): Value {
  const { attributes } = call;
  const [shortest, longest] = [attributes.number("min_gram_length"), attributes.number("max_gram_length")];
  const { items, shape } = itemsOf(call);
  if (shape.length > 2) throw new NodeProblem(`expected [n] or [rows, n] items, got [${shape}]`);
  const places = poolOf(call);
  const width = (attributes.numbers("ngram_indexes") ?? []).reduce((most, at) => Math.max(most, at), -1) + 1;
  const [rows, length] = shape.length === 2 ? [shape[0], shape[1]] : [1, items.length];
  const counts = new Float32Array(rows * width);
  const skips = attributes.number("max_skip_count");
  for (let row = 0; row < rows; row++) {
    const line = items.slice(row * length, (row + 1) * length);
    for (let size = shortest; size <= Math.min(longest, length); size++)
      for (let step = 1; step <= (size === 1 ? 1 : Math.min(skips + 1, length)); step++)
        for (let at = 0; at + (size - 1) * step < length; at++) {
          const gram = Array.from({ length: size }, (_, index) => line[at + index * step]);
          const column = places.get(keyOf(gram));
          if (column !== undefined) counts[row * width + column]++;
        }
  }
  const weighed = weigh(counts, width, attributes.text("mode"), attributes.numbers("weights"));
  return tensorOf(weighed, { shape: shape.length === 2 ? [rows, width] : [width], dtype: "float32" });
}

function weigh(counts: Float32Array, width: number, mode: string, weights: readonly number[] = []): Float32Array {
  const weightAt = (at: number) => weights[at % width] ?? 1;
  if (mode === "TF") return counts;
  if (mode === "IDF") return counts.map((count, at) => (count > 0 ? weightAt(at) : 0));
  if (mode === "TFIDF") return counts.map((count, at) => count * weightAt(at));
  throw new NodeProblem(`attribute mode: expected TF, IDF or TFIDF, got ${mode}`);
}

export const texts: Operators = {
  RegexFullMatch: fullMatch,
  StringConcat: concat,
  StringNormalizer: normalize,
  StringSplit: split,
  TfIdfVectorizer: tfIdf,
};

/** Tokenizer of com.microsoft: splits at separators, or into matches of a pattern, and pads to the longest list. */
export const tokenizer: Operator = (call) => {
  const x = call.strings(0);
  const { attributes } = call;
  const least = attributes.number("mincharnum", 1);
  const cut = cutter(attributes.texts("separators"), attributes.text("tokenexp", ""));
  const lists = x.strings.map((each) => cut(each).filter((token) => [...token].length >= least));
  const marked = attributes.flag("mark") ? lists.map((list) => ["\u0002", ...list, "\u0003"]) : lists;
  const longest = marked.reduce((length, list) => Math.max(length, list.length), 0);
  const pad = attributes.text("pad_value", "");
  const padded = marked.flatMap((list) => [...list, ...new Array<string>(longest - list.length).fill(pad)]);
  return stringsOf(padded, [...x.shape, longest]);
};

function cutter(separators: readonly string[] | undefined, expression: string) {
  try {
    if (expression !== "") {
      const pattern = new RegExp(expression, "gu");
      return (text: string): string[] => text.match(pattern) ?? [];
    }
    if (!separators || separators.every((each) => each === "")) return (text: string): string[] => [...text];
    const pattern = new RegExp(separators.join("|"), "u");
    return (text: string): string[] => text.split(pattern).filter((token) => token !== "");
  } catch (error) {
    throw new NodeProblem(`attribute tokenexp or separators: ${messageOf(error)}`);
  }
}
