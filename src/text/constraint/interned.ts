/** Interned patterns: equal patterns are one object, which keeps the number of derivatives small. */
import type { Automaton } from "./automaton.ts";
import type { CodePoints } from "./code_points.ts";
import type { Multiple, Pattern } from "./pattern.ts";

export interface Term {
  readonly id: number;
  /** Whether the term matches the empty text. */
  readonly isNullable: boolean;
  readonly node: Node;
}

type Node =
  | { readonly kind: "empty" }
  /** A character of one of these atoms. */
  | { readonly kind: "set"; readonly atoms: readonly number[] }
  | { readonly kind: "pair"; readonly first: Term; readonly rest: Term }
  | { readonly kind: "choice" | "both"; readonly parts: readonly Term[] }
  | { readonly kind: "repeat"; readonly part: Term; readonly least: number; readonly most: number }
  | { readonly kind: "not"; readonly part: Term }
  | ({ readonly kind: "multiple" } & Multiple)
  | { readonly kind: "states"; readonly states: Automaton; readonly at: number };

/** Terms over a fixed partition of the characters. */
export class Interned {
  private readonly known = new Map<string, Term>();
  private readonly automata = new Map<Automaton, number>();
  private readonly derivatives = new Map<Term, (Term | undefined)[]>();
  private readonly empty = this.term("empty", true, { kind: "empty" });
  private readonly nothing = this.term("choice", false, { kind: "choice", parts: [] });
  private readonly all: Term;
  /** The digit of each atom; 10 for ".", −1 for others. */
  private readonly digits: readonly number[];

  constructor(private readonly atoms: readonly CodePoints[]) {
    this.all = this.repeat(this.set(atoms.map((_, atom) => atom)), 0, Infinity);
    this.digits = atoms.map((set) => {
      const [first, last] = set[0];
      return set.length > 1 || first !== last ? -1 : "0123456789.".indexOf(String.fromCodePoint(first));
    });
  }

  read(pattern: Pattern): Term {
    switch (pattern.kind) {
      case "set":
        return this.set(this.atoms.flatMap(([range], atom) => (includes(pattern.set, range[0]) ? [atom] : [])));
      case "sequence":
        return pattern.parts.reduceRight((rest, part) => this.pair(this.read(part), rest), this.empty);
      case "choice":
        return this.choice(pattern.options.map((option) => this.read(option)));
      case "repeat":
        return this.repeat(this.read(pattern.part), pattern.least, pattern.most);
      case "both":
        return this.both(pattern.parts.map((part) => this.read(part)));
      case "not":
        return this.not(this.read(pattern.part));
      case "multiple":
        return this.multiple(pattern);
      case "states":
        return this.state(pattern.states, 0);
    }
  }

  /** Returns the term that matches after a character of an atom. */
  derivative(term: Term, atom: number): Term {
    const known = this.derivatives.get(term) ?? [];
    this.derivatives.set(term, known);
    known[atom] ??= this.derived(term.node, atom);
    return known[atom];
  }

  private derived(node: Node, atom: number): Term {
    switch (node.kind) {
      case "empty":
        return this.nothing;
      case "set":
        return node.atoms.includes(atom) ? this.empty : this.nothing;
      case "pair": {
        const { first, rest } = node;
        const head = this.pair(this.derivative(first, atom), rest);
        return first.isNullable ? this.choice([head, this.derivative(rest, atom)]) : head;
      }
      case "choice":
        return this.choice(node.parts.map((part) => this.derivative(part, atom)));
      case "both":
        return this.both(node.parts.map((part) => this.derivative(part, atom)));
      case "repeat": {
        const rest = this.repeat(node.part, Math.max(0, node.least - 1), node.most - 1);
        return this.pair(this.derivative(node.part, atom), rest);
      }
      case "not":
        return this.not(this.derivative(node.part, atom));
      case "multiple":
        return this.afterDigit(node, this.digits[atom]);
      case "states": {
        const point = this.atoms[atom][0][0];
        const move = node.states[node.at].moves.find(([set]) => includes(set, point));
        return move ? this.state(node.states, move[1]) : this.nothing;
      }
    }
  }

  private afterDigit(node: Multiple, digit: number): Term {
    const { of, rest, places, isAfterPoint } = node;
    if (digit < 0 || (digit === 10 && isAfterPoint)) return this.nothing;
    if (digit === 10) return this.multiple({ ...node, isAfterPoint: true });
    if (isAfterPoint && places === 0) return digit === 0 ? this.multiple(node) : this.nothing;
    return this.multiple({ ...node, rest: (rest * 10 + digit) % of, places: isAfterPoint ? places - 1 : places });
  }

  private term(key: string, isNullable: boolean, node: Node): Term {
    const term = this.known.get(key) ?? { id: this.known.size, isNullable, node };
    this.known.set(key, term);
    return term;
  }

  private set(atoms: readonly number[]): Term {
    return atoms.length === 0 ? this.nothing : this.term(`set ${atoms.join()}`, false, { kind: "set", atoms });
  }

  private pair(first: Term, rest: Term): Term {
    if (first === this.nothing || rest === this.nothing) return this.nothing;
    if (first === this.empty) return rest;
    if (rest === this.empty) return first;
    const { node } = first;
    if (node.kind === "pair") return this.pair(node.first, this.pair(node.rest, rest));
    const isNullable = first.isNullable && rest.isNullable;
    return this.term(`pair ${first.id} ${rest.id}`, isNullable, { kind: "pair", first, rest });
  }

  private choice(options: readonly Term[]): Term {
    const parts = new Set(options.flatMap((option) => (option.node.kind === "choice" ? option.node.parts : [option])));
    if (parts.has(this.all)) return this.all;
    const atoms = new Set<number>();
    for (const part of parts)
      if (part.node.kind === "set") {
        for (const atom of part.node.atoms) atoms.add(atom);
        parts.delete(part);
      }
    if (atoms.size > 0) parts.add(this.set([...atoms].sort((a, b) => a - b)));
    if ([...parts].some((part) => part !== this.empty && part.isNullable)) parts.delete(this.empty);
    return this.joined("choice", parts);
  }

  private both(all: readonly Term[]): Term {
    const parts = new Set(all.flatMap((part) => (part.node.kind === "both" ? part.node.parts : [part])));
    if (parts.has(this.nothing)) return this.nothing;
    parts.delete(this.all);
    return parts.size === 0 ? this.all : this.joined("both", parts);
  }

  private joined(kind: "choice" | "both", set: ReadonlySet<Term>): Term {
    const parts = [...set].sort((a, b) => a.id - b.id);
    if (parts.length === 1) return parts[0];
    if (parts.length === 0) return this.nothing;
    const isNullable = kind === "choice" ? parts.some(nullable) : parts.every(nullable);
    return this.term(`${kind} ${parts.map(({ id }) => id).join()}`, isNullable, { kind, parts });
  }

  private repeat(part: Term, least: number, most: number): Term {
    if (most === 0 || part === this.empty) return this.empty;
    if (part === this.nothing) return least === 0 ? this.empty : this.nothing;
    if (least === 1 && most === 1) return part;
    const isNullable = least === 0 || part.isNullable;
    return this.term(`repeat ${part.id} ${least} ${most}`, isNullable, { kind: "repeat", part, least, most });
  }

  private not(part: Term): Term {
    if (part.node.kind === "not") return part.node.part;
    if (part === this.nothing) return this.all;
    if (part === this.all) return this.nothing;
    return this.term(`not ${part.id}`, !part.isNullable, { kind: "not", part });
  }

  private multiple({ of, rest, places, isAfterPoint }: Multiple): Term {
    const isNullable = (rest * 10 ** places) % of === 0;
    const key = `multiple ${of} ${rest} ${places} ${isAfterPoint}`;
    return this.term(key, isNullable, { kind: "multiple", of, rest, places, isAfterPoint });
  }

  private state(states: Automaton, at: number): Term {
    if (states.length === 0) return this.nothing;
    const number = this.automata.get(states) ?? this.automata.size;
    this.automata.set(states, number);
    return this.term(`states ${number} ${at}`, states[at].accepts, { kind: "states", states, at });
  }
}

const nullable = (term: Term): boolean => term.isNullable;

const includes = (set: CodePoints, point: number): boolean =>
  set.some(([first, last]) => first <= point && point <= last);
