/** Rules for lists. Further items follow the individually listed ones only if the schema describes them. */
import { itemTerms, prefixLength } from "./alternatives.ts";
import { all, comma, type Expression, empty, none, one, rule, spaces, times, written } from "./productions.ts";
import type { SchemaRules } from "./schema_rules.ts";
import type { Term } from "./schema_terms.ts";
import { unsupported } from "./schema_text.ts";
import type { ContainsFacts, Shape } from "./shape.ts";

/** Maximum number of distinct values. Each subset of them needs a rule. */
const MOST_UNIQUE = 6;
/** Maximum counts with `contains`. Each count of matching items needs a rule. */
const MOST_COUNTED = 1000;

export class ListRules {
  constructor(private readonly rules: SchemaRules) {}

  of(shape: Shape): Expression {
    if (shape.leastItems > shape.mostItems) return none;
    return all(written('"["'), spaces, this.items(shape), written('"]"'));
  }

  private items(shape: Shape): Expression {
    if (shape.isUnique && shape.mostItems > 1) return this.unique(shape);
    if (shape.contains.length > 0) return this.counted(shape);
    const { lists, leastItems: least } = shape;
    const prefix = prefixLength(shape);
    const isOpen = prefix === 0 || least > prefix || lists.some(({ rest }) => rest !== undefined);
    const most = isOpen ? shape.mostItems : Math.min(shape.mostItems, prefix);
    const rest = (from: number): Expression => {
      if (most <= from) return empty;
      const item = this.item(itemTerms(shape, from));
      if (from > 0) return times(all(comma, item), Math.max(0, least - from), most - from);
      const some = all(item, times(all(comma, item), Math.max(0, least - 1), most - 1));
      return least === 0 ? one([empty, some]) : some;
    };
    // Builds the rules of leading items from the last to the first.
    const length = Math.min(prefix, most);
    return Array.from({ length }, (_, at) => length - 1 - at).reduce((next, at) => {
      const item = all(at > 0 ? comma : empty, this.item(itemTerms(shape, at)), next);
      return at >= least ? this.rule(one([empty, item])) : item;
    }, rest(length));
  }

  private item(terms: readonly Term[]): Expression {
    return all(this.rules.value(terms), spaces);
  }

  private rule(body: Expression): Expression {
    const name = this.rules.name("items");
    this.rules.productions.define(name, body);
    return rule(name);
  }

  /** Lists with `contains`: a rule for each number of items and of matching items. */
  private counted(shape: Shape): Expression {
    const { contains, leastItems, mostItems } = shape;
    const last = mostItems < Infinity ? mostItems : Math.max(1, leastItems, prefixLength(shape));
    const known = new Map<string, string>();
    const state = (at: number, counts: readonly number[]): Expression => {
      const key = `${at} ${counts.join(" ")}`;
      const name = known.get(key);
      if (name !== undefined) return rule(name);
      if (known.size > MOST_COUNTED)
        throw unsupported("contains requires fewer items here; lower maxItems or minContains");
      const added = this.rules.name("items");
      known.set(key, added);
      this.rules.productions.define(added, body(at, counts));
      return rule(added);
    };
    const body = (at: number, counts: readonly number[]): Expression => {
      const isEnough = at >= leastItems && contains.every(({ least }, index) => counts[index] >= least);
      const options = at < mostItems ? steps(contains, counts) : [];
      const items = options.map(({ terms, counts: next }) => {
        const item = this.item([...itemTerms(shape, at), ...terms]);
        return all(at > 0 ? comma : empty, item, state(Math.min(at + 1, last), next));
      });
      return one([...(isEnough ? [empty] : []), ...items]);
    };
    return state(
      0,
      contains.map(() => 0),
    );
  }

  /** Lists of unique items from a small set. */
  private unique(shape: Shape): Expression {
    const values = this.finite(itemTerms(shape, prefixLength(shape)));
    if (prefixLength(shape) > 0 || shape.contains.length > 0 || values === undefined || values.length > MOST_UNIQUE)
      throw unsupported(`uniqueItems requires items with at most ${MOST_UNIQUE} different values`);
    const { leastItems, mostItems } = shape;
    const known = new Map<number, string>();
    const texts = values.map((value) => written(JSON.stringify(JSON.stringify(value))));
    const state = (used: number): Expression => {
      const name = known.get(used);
      if (name !== undefined) return rule(name);
      const added = this.rules.name("items");
      known.set(used, added);
      const count = used.toString(2).replaceAll("0", "").length;
      const items =
        count < mostItems ? texts.flatMap((text, at) => ((used >> at) & 1 ? [] : [next(text, at, used)])) : [];
      this.rules.productions.define(added, one([...(count >= leastItems ? [empty] : []), ...items]));
      return rule(added);
    };
    const next = (text: Expression, at: number, used: number): Expression =>
      all(used > 0 ? comma : empty, text, spaces, state(used | (1 << at)));
    return state(0);
  }

  /** Returns all values that satisfy the terms; undefined if there are too many. */
  private finite(terms: readonly Term[]): unknown[] | undefined {
    const found = this.rules.alternatives.shapes(terms).map((shape) => {
      if (shape.values) return shape.values;
      const isFew = shape.types.every((type) => type === "null" || type === "boolean");
      return isFew ? [null, true, false].filter((value) => this.rules.alternatives.accepts(value, terms)) : undefined;
    });
    if (found.includes(undefined)) return undefined;
    return [...new Map(found.flatMap((values) => values!).map((value) => [JSON.stringify(value), value])).values()];
  }
}

interface Step {
  readonly terms: readonly Term[];
  readonly counts: readonly number[];
}

/** Returns the conditions that an item may satisfy and the counts after it. Counts stop at the required number. */
function steps(contains: readonly ContainsFacts[], counts: readonly number[]): Step[] {
  return contains.reduce<Step[]>(
    (some, { term, denied, least, most }, at) => {
      const isExact = most < Infinity;
      const count = counts[at];
      const after = isExact ? count + 1 : Math.min(count + 1, least);
      const meets = isExact && count >= most ? [] : [{ terms: [term], count: after }];
      const fails = { terms: isExact ? [denied] : [], count };
      return some.flatMap((step) =>
        [...meets, fails].map((next) => ({
          terms: [...step.terms, ...next.terms],
          counts: step.counts.with(at, next.count),
        })),
      );
    },
    [{ terms: [], counts }],
  );
}
