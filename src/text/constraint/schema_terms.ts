/** Terms: schemas and negated schemas that values must satisfy. */
import { recordIn, stringIn } from "../../core/values.ts";
import { checkSchema, isObject, type Placed } from "./json_schema.ts";
import { invalidSchema as invalid, type Schema } from "./schema_text.ts";

/** A schema that a value must or must not satisfy. Equal terms are one object. */
export interface Term {
  readonly id: number;
  readonly schema: Schema | boolean;
  readonly path: string;
  readonly isDenied: boolean;
}

const BASE = "schema://here/";

/** The terms of a whole schema and the targets of its references. */
export class SchemaTerms {
  readonly root: Term;
  private readonly terms = new Map<Schema | boolean, { held?: Term; denied?: Term }>();
  private readonly bases = new Map<Schema, string>();
  private readonly named = new Map<string, Schema>();
  private readonly paths = new Map<Schema, string>();
  private readonly dynamic = new Map<string, number>();
  private readonly constants = new Map<string, Schema>();
  private readonly lesser = new Map<Schema, Schema>();
  private count = 0;

  /** @throws {ArgumentError} `invalidSchema` */
  constructor(whole: unknown) {
    for (const placed of checkSchema(whole)) this.name(placed);
    for (const schema of this.bases.keys()) this.targets(schema);
    this.root = this.of(whole as Schema, "");
  }

  of(schema: Schema | boolean, path: string, isDenied = false): Term {
    const both = this.terms.get(schema) ?? {};
    this.terms.set(schema, both);
    const key = isDenied ? "denied" : "held";
    both[key] ??= { id: this.count++, schema, path, isDenied };
    return both[key];
  }

  /** Returns the term for all values except this one. */
  unequal(value: unknown, path: string): Term {
    const key = JSON.stringify(value);
    const schema = this.constants.get(key) ?? { const: value };
    this.constants.set(key, schema);
    return this.of(schema, path, true);
  }

  /** Returns the schemas that `$ref` and `$dynamicRef` of a schema refer to. */
  targets(schema: Schema): readonly (readonly [schema: Schema | boolean, path: string])[] {
    return ["$ref", "$dynamicRef"].flatMap((name) => {
      const reference = schema[name];
      if (reference === undefined) return [];
      const found = this.find(stringIn(reference), this.baseOf(schema));
      const isOne = name === "$ref" || (this.dynamic.get(stringIn(reference).replace(/^.*#/, "")) ?? 0) <= 1;
      if (found !== undefined && isOne) return [[found, isObject(found) ? this.paths.get(found)! : ""] as const];
      throw invalid(`${this.paths.get(schema)}.${name}`, "expected a definition of this schema, such as #/$defs/name");
    });
  }

  /** Returns the term of a schema without some of its keywords. */
  without(term: Term, names: readonly string[]): Term {
    const schema = term.schema as Schema;
    const reduced =
      this.lesser.get(schema) ?? Object.fromEntries(Object.entries(schema).filter(([name]) => !names.includes(name)));
    this.lesser.set(schema, reduced);
    this.bases.set(reduced, this.baseOf(schema));
    this.paths.set(reduced, term.path);
    return this.of(reduced, term.path);
  }

  private baseOf(schema: Schema): string {
    return this.bases.get(schema) ?? BASE;
  }

  private name({ schema, path, parent }: Placed): void {
    const { $id, $anchor, $dynamicAnchor } = schema;
    const around = parent ? this.baseOf(parent.schema) : BASE;
    const isAnchor = typeof $id === "string" && $id.startsWith("#"); // as in drafts 6 and 7
    const resolved = typeof $id === "string" && !isAnchor ? (URL.parse($id, around)?.href ?? around) : around;
    const base = resolved.replace(/#.*$/, "");
    this.bases.set(schema, base);
    this.paths.set(schema, path);
    if (!parent || base !== around) this.named.set(base, schema);
    for (const anchor of [isAnchor ? $id.slice(1) : undefined, $anchor, $dynamicAnchor])
      if (typeof anchor === "string") this.named.set(`${base}#${anchor}`, schema);
    if (typeof $dynamicAnchor === "string")
      this.dynamic.set($dynamicAnchor, (this.dynamic.get($dynamicAnchor) ?? 0) + 1);
  }

  private find(reference: string, base: string): Schema | boolean | undefined {
    const url = reference.startsWith("#") ? `${base}${reference}` : URL.parse(reference, base)?.href;
    if (url === undefined) return undefined;
    const [place, fragment = ""] = url.split("#", 2) as [string, string?];
    if (!/^($|\/)/.test(fragment)) return this.named.get(url);
    let at: unknown = this.named.get(place);
    for (const part of fragment.split("/").slice(1)) {
      const key = decode(part).replaceAll("~1", "/").replaceAll("~0", "~");
      if (typeof at !== "object" || at === null || !Object.hasOwn(at, key)) return undefined;
      at = recordIn(at)[key];
    }
    return typeof at === "boolean" || (isObject(at) && this.bases.has(at)) ? at : undefined;
  }
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
