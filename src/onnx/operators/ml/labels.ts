/** Operators of ai.onnx.ml that convert labels of classes and categories: strings and integers. */
import { tensor as tensorOf } from "../../../ops/creation/tensor.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import type { Call, Operators, Value } from "../../call.ts";
import { numbersOf } from "../../call.ts";
import { NodeProblem } from "../../errors.ts";
import { isStrings, type OnnxMap, type OnnxStrings, stringsOf, textOf } from "../../strings.ts";
import { int64 } from "../axes.ts";

export type Label = string | number;

/** Returns the elements and the shape of an input of strings or numbers. */
export function itemsAt(
  call: Call,
  at: number,
): { readonly items: readonly Label[]; readonly shape: readonly number[] } {
  const value = call.inputs[at];
  if (isStrings(value)) return { items: value.strings, shape: value.shape };
  return { items: call.numbers(at), shape: call.tensor(at).shape };
}

/** Returns labels as a tensor of strings, or of int64. */
export const labelsOf = (labels: readonly Label[], shape: readonly number[]): Tensor | OnnxStrings =>
  labels.length > 0 && typeof labels[0] === "string"
    ? stringsOf(labels as readonly string[], shape)
    : int64(labels as readonly number[], shape);

type Column = { readonly labels: readonly Label[]; readonly kind: "strings" | "int64s" | "floats" | "tensor" };

/** Reads the keys or values of a LabelEncoder from whichever attribute holds them. */
function column(call: Call, name: "keys" | "values"): Column | undefined {
  const { attributes } = call;
  const strings = attributes.texts(`${name}_strings`);
  if (strings) return { labels: strings, kind: "strings" };
  const kind = (["int64s", "floats"] as const).find((each) => attributes.has(`${name}_${each}`));
  if (kind) return { labels: attributes.numbers(`${name}_${kind}`)!, kind };
  const value = attributes.value(`${name}_tensor`);
  if (value === undefined) return undefined;
  return { labels: isStrings(value) ? value.strings : numbersOf(value), kind: "tensor" };
}

/** Replaces keys by values. In version 1, strings are replaced by their indices in a list, or indices by strings. */
function labelEncoder(call: Call): Value {
  const { attributes } = call;
  if (attributes.has("classes_strings")) return exchange(call, attributes.texts("classes_strings")!);
  const [keys, values] = [column(call, "keys"), column(call, "values")];
  if (!keys || !values || keys.labels.length !== values.labels.length)
    throw new NodeProblem("expected as many keys as values");
  const known = new Map(keys.labels.map((key, at) => [key, values.labels[at]]));
  const { items, shape } = itemsAt(call, 0);
  const found = items.map((item) => known.get(item));
  if (values.kind === "tensor") {
    const type = attributes.value("values_tensor")!;
    const given = attributes.value("default_tensor");
    if (isStrings(type)) {
      const missing = given && isStrings(given) ? given.strings[0] : "_Unused";
      return stringsOf(
        found.map((each) => (each as string | undefined) ?? missing),
        shape,
      );
    }
    const missing = given && !isStrings(given) ? (numbersOf(given)[0] ?? 0) : type.dtype.startsWith("float") ? -0 : -1;
    const list = found.map((each) => (each as number | undefined) ?? missing);
    return type.dtype === "int64" ? int64(list, shape) : tensorOf(list, { shape: [...shape], dtype: type.dtype });
  }
  if (values.kind === "strings") {
    const missing = attributes.text("default_string", "_Unused");
    return stringsOf(
      found.map((each) => (each as string | undefined) ?? missing),
      shape,
    );
  }
  const isFloat = values.kind === "floats";
  const missing = isFloat ? attributes.number("default_float", -0) : attributes.number("default_int64", -1);
  const list = found.map((each) => (each as number | undefined) ?? missing);
  return isFloat ? tensorOf(list, { shape: [...shape], dtype: "float32" }) : int64(list, shape);
}

/** Converts strings to their numbers, or numbers to their strings. By default, a string's number is its index. */
function exchange(call: Call, names: readonly string[], numbers = names.map((_, at) => at)): Value {
  const { attributes } = call;
  const value = call.inputs[0];
  if (isStrings(value)) {
    const known = new Map(names.map((name, at) => [name, numbers[at]]));
    const missing = attributes.number("default_int64", -1);
    return int64(
      value.strings.map((each) => known.get(each) ?? missing),
      value.shape,
    );
  }
  const known = new Map(numbers.map((number, at) => [number, names[at]]));
  const missing = attributes.text("default_string", "_Unused");
  return stringsOf(
    call.numbers(0).map((each) => known.get(each) ?? missing),
    call.tensor(0).shape,
  );
}

function categoryMapper(call: Call): Value {
  const { attributes } = call;
  return exchange(call, attributes.texts("cats_strings") ?? [], [...(attributes.numbers("cats_int64s") ?? [])]);
}

/** One-hot encoding, with one column per category. An unknown value is an error unless `zeros` is set. */
function oneHotEncoder(call: Call): Tensor {
  const { attributes } = call;
  const categories: readonly Label[] = attributes.texts("cats_strings") ?? attributes.numbers("cats_int64s") ?? [];
  const places = new Map(categories.map((each, at) => [each, at]));
  const { items, shape } = itemsAt(call, 0);
  const result = new Float32Array(items.length * categories.length);
  for (const [at, item] of items.entries()) {
    const place = places.get(typeof item === "number" ? Math.trunc(item) : item);
    if (place !== undefined) result[at * categories.length + place] = 1;
    else if (!attributes.flag("zeros", true)) throw new NodeProblem(`unknown category ${JSON.stringify(item)}`);
  }
  return tensorOf(result, { shape: [...shape, categories.length], dtype: "float32" });
}

/** Converts each row to a map from labels to numbers. */
function zipMap(call: Call): readonly OnnxMap[] {
  const { attributes } = call;
  const labels: readonly Label[] =
    attributes.texts("classlabels_strings") ?? attributes.numbers("classlabels_int64s") ?? [];
  const x = call.tensor(0);
  const width = x.shape.at(-1) ?? 0;
  if (width !== labels.length) throw new NodeProblem(`expected ${labels.length} columns, got ${width}`);
  const numbers = call.numbers(0);
  return Array.from(
    { length: x.rank === 2 ? x.shape[0] : 1 },
    (_, row) => new Map(labels.map((label, at) => [label, numbers[row * width + at]])),
  );
}

/** Converts a map to a tensor [1, labels], in the order of the vocabulary. */
function dictVectorizer(call: Call): Value {
  const { attributes } = call;
  const vocabulary: readonly Label[] =
    attributes.texts("string_vocabulary") ?? attributes.numbers("int64_vocabulary") ?? [];
  const map = mapAt(call);
  return tensorOf(
    vocabulary.map((label) => map.get(label) ?? 0),
    { shape: [1, vocabulary.length], dtype: "float32" },
  );
}

function mapAt(call: Call): OnnxMap {
  const value = call.inputs[0];
  if (!(value instanceof Map)) throw new NodeProblem("input 0: expected a map");
  return value;
}

/** Converts a map to a tensor, in the order of its keys. In sparse form, keys are indices into `max_map` elements. */
function castMap(call: Call): Value {
  const { attributes } = call;
  const entries = [...mapAt(call)].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  const isSparse = attributes.text("map_form", "DENSE") === "SPARSE";
  const length = isSparse ? attributes.number("max_map", 1) : entries.length;
  const values = new Array<number>(length).fill(0);
  for (const [at, [key, value]] of entries.entries()) values[isSparse ? Number(key) : at] = Number(value);
  const type = attributes.text("cast_to", "TO_FLOAT");
  if (type === "TO_STRING")
    return stringsOf(
      values.map((each) => textOf(each)),
      [1, length],
    );
  return type === "TO_INT64"
    ? int64(values.map(Math.trunc), [1, length])
    : tensorOf(values, { shape: [1, length], dtype: "float32" });
}

export const labelOperators: Operators = {
  CastMap: castMap,
  CategoryMapper: categoryMapper,
  DictVectorizer: dictVectorizer,
  LabelEncoder: labelEncoder,
  OneHotEncoder: oneHotEncoder,
  ZipMap: zipMap,
};
