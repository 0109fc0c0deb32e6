/**
 * Builds deterministic automata from patterns with derivatives (J. Brzozowski, "Derivatives of regular expressions",
 * 1964): the derivative of a pattern by a character matches the texts that may follow that character. So intersections
 * and complements cost no more than other operators.
 */
import { ArgumentError } from "../../core/errors.ts";
import { type CodePoints, everything, rangeOf, union } from "./code_points.ts";
import { Interned, type Term } from "./interned.ts";
import type { Pattern } from "./pattern.ts";

/** A state's transitions: disjoint sets of characters, each with its next state. */
export interface State {
  readonly accepts: boolean;
  readonly moves: readonly (readonly [set: CodePoints, next: number])[];
}

/** States, the first of which is the start. Each can reach an accepting state; empty if nothing is accepted. */
export type Automaton = readonly State[];

const MOST_STATES = 20_000;

/**
 * Returns the minimal automaton of a pattern.
 *
 * @throws {ArgumentError} `tooLarge` for more than 20,000 intermediate states.
 */
export function automatonOf(pattern: Pattern): Automaton {
  const atoms = atomsOf(pattern);
  const terms = new Interned(atoms);
  const states = [terms.read(pattern)];
  const numbers = new Map([[states[0], 0]]);
  const moves: number[][] = [];
  for (let at = 0; at < states.length; at++) {
    if (states.length > MOST_STATES) throw tooLarge();
    moves.push(atoms.map((_, atom) => numberOf(terms.derivative(states[at], atom), states, numbers)));
  }
  const accepting = states.map((state) => state.isNullable);
  return merged(accepting, moves, atoms);
}

const tooLarge = () =>
  new ArgumentError(
    "compileConstraint",
    "tooLarge",
    `expected regular expressions, lengths and multiples of at most ${MOST_STATES} automaton states in total`,
  );

function numberOf(term: Term, states: Term[], numbers: Map<Term, number>): number {
  const known = numbers.get(term);
  if (known !== undefined) return known;
  numbers.set(term, states.length);
  states.push(term);
  return states.length - 1;
}

/** Whether a text matches. */
export function matches(pattern: Pattern, text: string): boolean {
  const atoms = atomsOf(pattern);
  const terms = new Interned(atoms);
  let term = terms.read(pattern);
  for (const character of text) {
    const point = character.codePointAt(0)!;
    const atom = atoms.findIndex((set) => set.some(([first, last]) => first <= point && point <= last));
    if (atom < 0) return false; // a lone surrogate
    term = terms.derivative(term, atom);
  }
  return term.isNullable;
}

/** Whether a pattern matches no text. @throws {ArgumentError} `tooLarge` */
export const matchesNothing = (pattern: Pattern): boolean => automatonOf(pattern).length === 0;

/** Returns the coarsest partition of all characters such that every set of a pattern is a union of its parts. */
function atomsOf(pattern: Pattern): CodePoints[] {
  const sets = [...setsOf(pattern)];
  const starts = [...new Set([everything, ...sets].flatMap((set) => set.flatMap(([first, last]) => [first, last + 1])))]
    .sort((a, b) => a - b)
    .filter((start) => lastFrom(start) !== undefined);
  const places = sets.map(() => 0);
  const groups = new Map<string, (readonly [number, number])[]>();
  for (const [at, start] of starts.entries()) {
    const members = sets.map((set, setIndex) => {
      while (set[places[setIndex]] && set[places[setIndex]][1] < start) places[setIndex]++;
      const range = set[places[setIndex]];
      return range !== undefined && range[0] <= start;
    });
    const end = Math.min((starts[at + 1] ?? 0x110000) - 1, lastFrom(start)!);
    const key = members.map(Number).join("");
    groups.set(key, [...(groups.get(key) ?? []), [start, end]]);
  }
  return [...groups.values()].map((ranges) => union(ranges));
}

/** Returns the last character of the range of characters around a code point; undefined for a surrogate. */
const lastFrom = (point: number): number | undefined =>
  everything.find(([first, last]) => first <= point && point <= last)?.[1];

const digits = Array.from({ length: 10 }, (_, digit) => rangeOf(48 + digit));

function setsOf(pattern: Pattern, found = new Set<CodePoints>()): Set<CodePoints> {
  if (pattern.kind === "set") found.add(pattern.set);
  if (pattern.kind === "states") for (const { moves } of pattern.states) for (const [set] of moves) found.add(set);
  if (pattern.kind === "multiple") for (const set of [...digits, rangeOf(46)]) found.add(set);
  const parts =
    "parts" in pattern
      ? pattern.parts
      : "options" in pattern
        ? pattern.options
        : "part" in pattern
          ? [pattern.part]
          : [];
  for (const part of parts) setsOf(part, found);
  return found;
}

/** Merges states that accept the same texts (E. Moore's refinement), and drops those that accept none. */
function merged(accepting: readonly boolean[], moves: readonly number[][], atoms: readonly CodePoints[]): Automaton {
  let classes = accepting.map(Number);
  for (let count = new Set(classes).size; ; ) {
    const known = new Map<string, number>();
    const refined = moves.map((transitions, state) => {
      const key = `${classes[state]}:${transitions.map((next) => classes[next]).join()}`;
      const number = known.get(key) ?? known.size;
      known.set(key, number);
      return number;
    });
    classes = refined;
    if (known.size === count) break;
    count = known.size;
  }
  const states: { accepts: boolean; moves: Map<number, CodePoints[]> }[] = [];
  for (const [state, classNumber] of classes.entries())
    if (!states[classNumber]) {
      const sets = new Map<number, CodePoints[]>();
      for (const [atom, next] of moves[state].entries())
        sets.set(classes[next], [...(sets.get(classes[next]) ?? []), atoms[atom]]);
      states[classNumber] = { accepts: accepting[state], moves: sets };
    }
  return live(
    states.map((state) => ({ ...state, moves: [...state.moves].map(([next, sets]) => [union(...sets), next]) })),
  );
}

function live(states: Automaton): Automaton {
  const before = states.map((): number[] => []);
  for (const [state, { moves }] of states.entries()) for (const [, next] of moves) before[next].push(state);
  const leads = new Set<number>();
  const waiting = [...states.keys()].filter((state) => states[state].accepts);
  for (let state = waiting.pop(); state !== undefined; state = waiting.pop()) {
    if (leads.has(state)) continue;
    leads.add(state);
    waiting.push(...before[state]);
  }
  if (!leads.has(0)) return [];
  const numbers = new Map([...leads].sort((a, b) => a - b).map((state, number) => [state, number]));
  return [...numbers.keys()].map((state) => ({
    accepts: states[state].accepts,
    moves: states[state].moves.flatMap(([set, next]) => {
      const number = numbers.get(next);
      return number === undefined ? [] : [[set, number] as const];
    }),
  }));
}
