/**
 * Rules for objects. Named properties appear in the order of the schema. Further properties follow only if the schema
 * describes them or names none.
 */
import { propertyTerms } from "./alternatives.ts";
import { matches } from "./automaton.ts";
import { anyText, both, choice, literal, not, type Pattern } from "./pattern.ts";
import { all, comma, type Expression, empty, none, one, rule, spaces, times, written } from "./productions.ts";
import type { SchemaRules } from "./schema_rules.ts";
import type { Term } from "./schema_terms.ts";
import { unsupported } from "./schema_text.ts";
import type { ObjectFacts, Shape } from "./shape.ts";

/** Maximum number of patterns. Each subset of them needs a rule. */
const MOST_PATTERNS = 4;
/** If the number of properties is limited, each count needs separate rules. */
const MOST_COUNTED = 100;

interface Property {
  readonly pair: Expression;
  readonly isRequired: boolean;
}

interface Properties {
  readonly named: readonly Property[];
  /** All other properties. */
  readonly other: Expression;
  readonly least: number;
  readonly most: number;
}

export class ObjectRules {
  constructor(private readonly rules: SchemaRules) {}

  of(shape: Shape): Expression {
    const { objects, required, names, leastProperties, mostProperties } = shape;
    const keys = [...new Set([...objects.flatMap(({ properties }) => [...properties.keys()]), ...required])];
    const allowed = names.length > 0 ? this.rules.alternatives.textsOf(names) : anyText;
    const named = keys
      .filter((key) => required.includes(key) || !isForbidden(shape, key))
      .map((key) => ({ pair: this.named(shape, key, allowed), isRequired: required.includes(key) }));
    const isOpen = named.length < leastProperties || isOpened(shape, named.length);
    const other = isOpen ? this.others(shape, keys, allowed) : none;
    // Further properties may repeat a name, so any number of them counts as only one.
    if (leastProperties > named.length + 1)
      throw unsupported(
        `expected minProperties to be at most ${named.length + 1}, the number of named properties plus 1`,
      );
    const body = new PropertyStates(this.rules, { named, other, least: leastProperties, most: mostProperties });
    return all(written('"{"'), spaces, body.state(0, 0), written('"}"'));
  }

  private named(shape: Shape, key: string, allowed: Pattern): Expression {
    if (allowed !== anyText && !matches(allowed, key)) return none;
    return this.pair(written(JSON.stringify(JSON.stringify(key))), propertyTerms(shape, key));
  }

  private pair(key: Expression, terms: readonly Term[]): Expression {
    return all(key, spaces, written('":"'), spaces, this.rules.value(terms), spaces);
  }

  /** A property with another name. The conditions on its value depend on the patterns that the name matches. */
  private others({ objects }: Shape, keys: readonly string[], allowed: Pattern): Expression {
    const patterns = [...new Set(objects.flatMap((object) => object.patterns.map(([pattern]) => pattern)))];
    if (patterns.length > MOST_PATTERNS)
      throw unsupported(`expected at most ${MOST_PATTERNS} patternProperties in total, got ${patterns.length}`);
    const isOther = keys.length > 0 ? not(choice(keys.map(literal))) : anyText;
    const options = Array.from({ length: 2 ** patterns.length }, (_, set) => {
      const met = new Set(patterns.filter((_, at) => (set >> at) & 1));
      const name = both([allowed, isOther, ...patterns.map((pattern) => (met.has(pattern) ? pattern : not(pattern)))]);
      const key = this.key(name);
      return (
        key &&
        this.pair(
          key,
          objects.flatMap((object) => termsOf(object, met)),
        )
      );
    });
    return one(options.filter((option) => option !== undefined));
  }

  private key(name: Pattern): Expression | undefined {
    const added = this.rules.patterns.add(name, "json");
    return added === undefined ? undefined : written(`"\\"" ${added} "\\""`);
  }
}

/**
 * Rules for the rest of an object, one per state: the position among the named properties, and how many were written.
 */
class PropertyStates {
  private readonly known = new Map<string, string>();
  /** The count up to which properties must be counted. */
  private readonly counted: number;

  constructor(
    private readonly rules: SchemaRules,
    private readonly properties: Properties,
  ) {
    const { least, most } = properties;
    this.counted = Math.max(1, most < Infinity ? most : least);
    if ((least > 1 || most < properties.named.length) && this.counted > MOST_COUNTED)
      throw unsupported(`expected minProperties and maxProperties of at most ${MOST_COUNTED}`);
  }

  state(at: number, count: number): Expression {
    const key = `${at} ${count}`;
    const known = this.known.get(key);
    if (known !== undefined) return rule(known);
    const name = this.rules.name("properties");
    this.known.set(key, name);
    const { named } = this.properties;
    this.rules.productions.define(name, at < named.length ? this.next(named[at], at, count) : this.rest(count));
    return rule(name);
  }

  private next({ pair, isRequired }: Property, at: number, count: number): Expression {
    const after = () => this.state(at + 1, Math.min(count + 1, this.counted));
    const isAllowed = count < this.properties.most;
    const property = isAllowed ? [all(count > 0 ? comma : empty, pair, after())] : [];
    return one([...property, ...(isRequired ? [] : [this.state(at + 1, count)])]);
  }

  /** Matches properties not named in the schema. */
  private rest(count: number): Expression {
    const { other, least, most } = this.properties;
    const needed = Math.max(0, least - count);
    if (needed > 1 || count + needed > most) return none;
    const more = (fewest: number, room: number) => times(all(comma, other), fewest, room);
    if (count > 0) return more(needed, most - count);
    const some = most > 0 ? all(other, more(0, most - 1)) : none;
    return needed > 0 ? some : one([empty, some]);
  }
}

const termsOf = ({ patterns, others }: ObjectFacts, met: ReadonlySet<Pattern>): Term[] => {
  const matching = patterns.flatMap(([pattern, term]) => (met.has(pattern) ? [term] : []));
  return matching.length > 0 ? matching : [others ?? []].flat();
};

const isForbidden = ({ objects }: Shape, key: string): boolean =>
  objects.some(({ properties }) => properties.get(key)?.schema === false);

/** Whether properties not named in the schema are allowed. */
const isOpened = ({ objects, names }: Shape, named: number): boolean =>
  named === 0 ||
  names.length > 0 ||
  objects.some(({ patterns, others }) => patterns.length > 0 || others !== undefined);
