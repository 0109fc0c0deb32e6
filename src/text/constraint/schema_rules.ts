/** Writes JSON schemas in XGrammar's notation. */
import { Alternatives, constants, textPattern } from "./alternatives.ts";
import { ListRules } from "./list_rules.ts";
import { type NumberFacts, numberPattern } from "./number_pattern.ts";
import { ObjectRules } from "./object_rules.ts";
import { anyText, choice, literal } from "./pattern.ts";
import { type Expression, none, one, Productions, rule, written } from "./productions.ts";
import { SchemaTerms, type Term } from "./schema_terms.ts";
import { atPath, invalidSchema as invalid } from "./schema_text.ts";
import type { Shape, Type } from "./shape.ts";
import { PatternRules } from "./write_pattern.ts";

const MOST_RULES = 5000;

/** Unescaped characters of a string as valid UTF-8 bytes. */
const characters = [
  "[\\x20-\\x21\\x23-\\x5b\\x5d-\\x7f]",
  "[\\xc2-\\xdf] any_next",
  "[\\xe0\\xe0] [\\xa0-\\xbf] any_next",
  "[\\xe1-\\xec\\xee-\\xef] any_next any_next",
  "[\\xed\\xed] [\\x80-\\x9f] any_next",
  "[\\xf0\\xf0] [\\x90-\\xbf] any_next any_next",
  "[\\xf1-\\xf3] any_next any_next any_next",
  "[\\xf4\\xf4] [\\x80-\\x8f] any_next any_next",
  '"\\\\" any_escape',
];
const rest = characters.map((rule) => `${rule.replaceAll("any_next", "[\\x80-\\xbf]")} any_text_rest`).join(" | ");

/** Any string, with characters escaped or not. The assertion lets XGrammar compute its token masks in advance. */
const TEXT = `any_text ::= ["] any_text_rest
any_text_rest ::= ("\\"" | ${rest}) (= [ \\n\\t]{0,2} [,}\\]:])
any_escape ::= ["\\\\/bfnrt] | "u" any_unit
any_unit ::= [0-9A-Ca-cEFef] any_hex any_hex any_hex | [Dd] [0-7] any_hex any_hex | any_pair
any_pair ::= [Dd] [89ABab] any_hex any_hex "\\\\u" [Dd] [C-Fc-f] any_hex any_hex
any_hex ::= [0-9A-Fa-f]`;

/**
 * Converts a schema to a grammar whose rule `root` matches the JSON of valid values.
 *
 * @param text the result of {@link schemaText}
 * @throws {ArgumentError} `invalidSchema`, with the path of the problem.
 */
export function schemaRules(text: string): string {
  const rules = new SchemaRules(new SchemaTerms(JSON.parse(text)));
  return rules.text();
}

export class SchemaRules {
  readonly productions = new Productions();
  readonly patterns = new PatternRules();
  readonly alternatives: Alternatives;
  private readonly waiting: (readonly [name: string, terms: readonly Term[]])[] = [];
  private readonly names = new Map<string, string>();
  private readonly numbers = new Map<string, string>();
  private readonly objects = new ObjectRules(this);
  private readonly lists = new ListRules(this);
  private count = 0;

  constructor(private readonly terms: SchemaTerms) {
    this.alternatives = new Alternatives(terms);
  }

  text(): string {
    this.productions.define("root", this.value([this.terms.root]));
    for (let next = this.waiting.pop(); next; next = this.waiting.pop()) this.define(...next);
    const rules = this.productions.write("root");
    if (rules === undefined) throw invalid("", "expected a schema that some value satisfies");
    return `${rules}\n${TEXT}\n${this.patterns.text}\n`;
  }

  /** Returns a rule for the values that satisfy all terms. */
  value(terms: readonly Term[]): Expression {
    const key = [...new Set(terms.map(({ id }) => id))].sort((a, b) => a - b).join();
    const known = this.names.get(key);
    if (known !== undefined) return rule(known);
    const name = this.name("value");
    this.names.set(key, name);
    this.waiting.push([name, terms]);
    return rule(name);
  }

  /** Returns a unique rule name. */
  name(kind: string): string {
    if (this.productions.size > MOST_RULES) throw invalid("", `expected a schema of at most ${MOST_RULES} rules`);
    return `${kind}_${this.count++}`;
  }

  private define(name: string, terms: readonly Term[]): void {
    const path = terms[0]?.path ?? "";
    const options = this.alternatives.shapes(terms).flatMap((shape) => this.shape(shape, path));
    this.productions.define(name, one(options));
  }

  private shape(shape: Shape, path: string): Expression[] {
    if (shape.values) return [atPath(path, () => this.values(shape.values!))];
    const place = (type: Type) => (type === "string" && shape.patterns.length > 0 ? `${path}.pattern` : path);
    return shape.types.map((type) => atPath(place(type), () => this.typed(type, shape)));
  }

  private typed(type: Type, shape: Shape): Expression {
    switch (type) {
      case "null":
      case "boolean": {
        const left = constants[type].filter((constant) => !shape.excluded.includes(constant));
        return one(left.map((constant) => written(`"${constant}"`)));
      }
      case "number":
        return this.number(shape);
      case "string":
        return this.string(shape);
      case "array":
        return this.lists.of(shape);
      case "object":
        return this.objects.of(shape);
    }
  }

  private values(values: readonly unknown[]): Expression {
    const texts = values.map((value) => literal(JSON.stringify(value)));
    return texts.length === 0 ? none : written(this.patterns.add(choice(texts), "plain")!);
  }

  private number({ least, most, multiples, nonMultiples, excluded }: Shape): Expression {
    const numbers = excluded.filter((value) => typeof value === "number");
    const facts: NumberFacts = { least, most, multiples, nonMultiples, excluded: numbers };
    const key = [least, most, multiples, nonMultiples, numbers].map(String).join(";");
    const name = this.numbers.get(key) ?? this.patterns.addDeterministic(numberPattern(facts));
    if (name === undefined) return none;
    this.numbers.set(key, name);
    return written(name);
  }

  private string(shape: Shape): Expression {
    const pattern = textPattern(shape);
    if (pattern === anyText) return written("any_text");
    const name = this.patterns.add(pattern, "json");
    return name === undefined ? none : written(`"\\"" ${name} "\\""`);
  }
}
