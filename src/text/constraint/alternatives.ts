/** Expands a schema's alternatives to shapes. A valid value has one of them. */
import { listIn, numberIn, recordIn, stringIn } from "../../core/values.ts";
import { matches, matchesNothing } from "./automaton.ts";
import { everything } from "./code_points.ts";
import { type Branch, failing, heldBy, type Reading, tooManyShapes } from "./keywords.ts";
import { anyText, both, choice, lengthsOf, literal, not, nothing, type Pattern, repeat, setOf } from "./pattern.ts";
import type { SchemaTerms, Term } from "./schema_terms.ts";
import { type Schema, UNEVALUATED } from "./schema_text.ts";
import { anything, equal, MOST_SHAPES, meet, type Shape, TYPES, type Type, typeOf } from "./shape.ts";

const MOST_STEPS = 100_000;

interface Way {
  readonly shape: Shape;
  readonly waiting: readonly Term[];
  readonly seen: ReadonlySet<Term>;
}

export class Alternatives {
  private readonly known = new Map<string, readonly Shape[]>();
  private readonly possible = new Map<string, boolean>();
  private steps = 0;

  constructor(readonly terms: SchemaTerms) {}

  /** Returns the shapes of values that satisfy all terms. @throws {ArgumentError} `invalidSchema` for too many */
  shapes(terms: readonly Term[]): readonly Shape[] {
    const key = keyOf(terms);
    const known = this.known.get(key);
    if (known) return known;
    const found: Shape[] = [];
    const ways: Way[] = [{ shape: anything, waiting: terms, seen: new Set() }];
    for (let way = ways.pop(); way; way = ways.pop()) {
      const [next, ...waiting] = way.waiting;
      if (!next) found.push(way.shape);
      else if (way.seen.has(next)) ways.push({ ...way, waiting });
      else if (!this.isContradicted(next, way)) ways.push(...this.after(next, { ...way, waiting }));
      if (found.length > MOST_SHAPES || this.steps++ > MOST_STEPS) throw tooManyShapes(terms[0]?.path ?? "");
    }
    const shapes = found
      .reverse()
      .map((shape) => this.narrowed(shape))
      .filter(({ types }) => types.length > 0);
    this.known.set(key, shapes);
    return shapes;
  }

  private isContradicted(term: Term, { seen }: Way): boolean {
    return seen.has(this.terms.of(term.schema, term.path, !term.isDenied));
  }

  /** Returns the continuations after a term, in reverse order. */
  private after(term: Term, { shape, waiting, seen }: Way): Way[] {
    const { schema, path, isDenied } = term;
    const now = new Set([...seen, term]);
    if (typeof schema === "boolean") return schema === isDenied ? [] : [{ shape, waiting, seen: now }];
    const reading: Reading = {
      schema,
      path,
      terms: this.terms,
      areDisjoint: (a, b) => !this.isPossible([a, b]),
    };
    const isWhole = !isDenied && UNEVALUATED.some((name) => schema[name] !== undefined);
    const all = isDenied ? [failing(reading)] : isWhole ? [this.unevaluated(term)] : heldBy(reading);
    let ways: Way[] = [{ shape, waiting, seen: now }];
    for (const branches of all) {
      ways = ways.flatMap((way) => branches.flatMap((branch) => joined(way, branch)));
      if (ways.length > MOST_SHAPES) throw tooManyShapes(path);
    }
    return ways.reverse();
  }

  /** Evaluates the `unevaluated…` keywords, which depend on the chosen alternatives. */
  private unevaluated(term: Term): Branch[] {
    const { schema, path } = term as Term & { readonly schema: Schema };
    const [property, item] = UNEVALUATED.map((name) =>
      schema[name] === undefined ? undefined : this.terms.of(schema[name] as Schema, `${path}.${name}`),
    );
    const anyValue = this.terms.of(true, path);
    return this.shapes([this.terms.without(term, UNEVALUATED)]).map((shape) => {
      const objects = shape.objects.filter((object) => !object.isDenied);
      const lists = shape.lists.filter((list) => !list.isDenied);
      const properties = new Map(
        objects.flatMap((object) => [...object.properties.keys()]).map((key) => [key, anyValue]),
      );
      const patterns = objects.flatMap((object) => object.patterns.map(([pattern]) => [pattern, anyValue] as const));
      const prefix = Array.from({ length: prefixLength({ lists }) }, () => anyValue);
      const rest = {
        ...(property &&
          !objects.some(({ others }) => others) && { objects: [{ properties, patterns, others: property }] }),
        ...(item && !lists.some((list) => list.rest) && { lists: [{ prefix, rest: item }] }),
      };
      return { facts: meet(shape, rest) };
    });
  }

  /** Restricts a shape's listed values to those that satisfy the rest. */
  private narrowed(shape: Shape): Shape {
    const { values, ...others } = shape;
    if (values === undefined) return shape;
    const left = values.filter((value) => this.fits(value, { ...others, values: undefined }));
    return { ...anything, values: left, types: TYPES.filter((type) => left.some((value) => typeOf(value) === type)) };
  }

  /** Whether a value satisfies all terms. */
  accepts(value: unknown, terms: readonly Term[]): boolean {
    return this.shapes(terms).some((shape) => this.fits(value, shape));
  }

  private fits(value: unknown, shape: Shape): boolean {
    const type = typeOf(value);
    if (!shape.types.includes(type) || shape.excluded.some((excluded) => equal(excluded, value))) return false;
    if (shape.values) return shape.values.some((constant) => equal(constant, value));
    if (type === "number") return fitsNumber(numberIn(value), shape);
    if (type === "string") return matches(textPattern(shape), stringIn(value));
    if (type === "array") return this.fitsList(listIn(value), shape);
    return type !== "object" || this.fitsObject(recordIn(value), shape);
  }

  private fitsList(list: readonly unknown[], shape: Shape): boolean {
    const { leastItems, mostItems, isUnique, contains } = shape;
    if (list.length < leastItems || list.length > mostItems) return false;
    if (isUnique && list.some((item, at) => list.slice(0, at).some((other) => equal(item, other)))) return false;
    const counted = contains.every(({ term, least, most }) => {
      const count = list.filter((item) => this.accepts(item, [term])).length;
      return least <= count && count <= most;
    });
    return counted && list.every((item, at) => this.accepts(item, itemTerms(shape, at)));
  }

  private fitsObject(object: Readonly<Record<string, unknown>>, shape: Shape): boolean {
    const keys = Object.keys(object);
    if (keys.length < shape.leastProperties || keys.length > shape.mostProperties) return false;
    if (!shape.required.every((name) => Object.hasOwn(object, name))) return false;
    return keys.every((key) => this.accepts(key, shape.names) && this.accepts(object[key], propertyTerms(shape, key)));
  }

  /** Whether some value may satisfy all terms. Only false is certain. */
  isPossible(terms: readonly Term[]): boolean {
    const key = keyOf(terms);
    const known = this.possible.get(key);
    if (known !== undefined) return known;
    // a recursive reference counts as possible: only the other parts of a schema can make it impossible
    this.possible.set(key, true);
    const possible = this.shapes(terms).some((shape) => shape.types.some((type) => this.mayBe(type, shape)));
    this.possible.set(key, possible);
    return possible;
  }

  private mayBe(type: Type, shape: Shape): boolean {
    if (shape.values) return true;
    switch (type) {
      case "null":
      case "boolean":
        return constants[type].some((constant) => this.fits(constant, shape));
      case "number":
        return shape.least <= shape.most;
      case "string":
        return (
          shape.leastLength <= shape.mostLength && !(shape.patterns.length > 1 && matchesNothing(textPattern(shape)))
        );
      case "array": {
        const needed = Math.min(shape.leastItems, prefixLength(shape) + 1);
        const items = Array.from({ length: needed }, (_, at) => itemTerms(shape, at));
        return shape.leastItems <= shape.mostItems && items.every((item) => this.isPossible(item));
      }
      case "object":
        return (
          Math.max(shape.leastProperties, shape.required.length) <= shape.mostProperties &&
          shape.required.every((name) => this.isPossible(propertyTerms(shape, name)))
        );
    }
  }

  /** Returns the strings that satisfy all terms. */
  textsOf(terms: readonly Term[]): Pattern {
    const shapes = this.shapes(terms).filter(({ types }) => types.includes("string"));
    return choice(shapes.map((shape) => textPattern(shape)));
  }
}

export const constants = { null: [null], boolean: [true, false] } as const;

const keyOf = (terms: readonly Term[]): string => [...new Set(terms.map(({ id }) => id))].sort((a, b) => a - b).join();

function joined({ shape, waiting, seen }: Way, { facts = {}, terms = [] }: Branch): Way[] {
  const met = meet(shape, facts);
  return met.types.length === 0 || met.values?.length === 0
    ? []
    : [{ shape: met, waiting: [...terms, ...waiting], seen }];
}

function fitsNumber(value: number, { least, most, multiples, nonMultiples }: Shape): boolean {
  const isMultiple = (of: number) => Math.abs(value / of - Math.round(value / of)) < 1e-9;
  return least <= value && value <= most && multiples.every(isMultiple) && !nonMultiples.some(isMultiple);
}

/** Returns the pattern of the strings that a shape allows. */
export function textPattern({ values, patterns, leastLength, mostLength, excluded }: Shape): Pattern {
  const texts = (of: readonly unknown[]) => of.filter((value) => typeof value === "string").map(literal);
  if (values) return choice(texts(values));
  if (leastLength > mostLength) return nothing;
  const pattern = both(patterns);
  const [least, most] = lengthsOf(pattern);
  // An intersection is an automaton, which is larger than an expression.
  const isBounded = least >= leastLength && most <= mostLength;
  const length = isBounded ? anyText : repeat(setOf(everything), leastLength, mostLength);
  return both([pattern, length, ...texts(excluded).map(not)]);
}

/** Returns the number of leading items with separate terms. */
export const prefixLength = ({ lists }: Pick<Shape, "lists">): number =>
  Math.max(0, ...lists.map(({ prefix }) => prefix.length));

export const itemTerms = ({ lists }: Shape, at: number): Term[] =>
  lists.flatMap(({ prefix, rest }) => prefix[at] ?? rest ?? []);

/** Returns the terms of a property's value. */
export const propertyTerms = ({ objects }: Shape, name: string): Term[] =>
  objects.flatMap(({ properties, patterns, others }) => {
    const terms = [
      ...[properties.get(name) ?? []].flat(),
      ...patterns.flatMap(([pattern, term]) => (matches(pattern, name) ? [term] : [])),
    ];
    return terms.length > 0 ? terms : (others ?? []);
  });
