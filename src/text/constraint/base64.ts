/** Base64url (RFC 4648, section 5) of the texts of a pattern. */
import { type Automaton, automatonOf, type State } from "./automaton.ts";
import { rangeOf } from "./code_points.ts";
import type { Pattern } from "./pattern.ts";

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const digits = Array.from(DIGITS, (digit) => rangeOf(digit.charCodeAt(0)));

/** A state of the automaton of the texts, and those bits of the next byte that the digits so far determine. */
interface Place {
  readonly state: number;
  readonly count: number;
  readonly bits: number;
}

/**
 * Returns the encoded texts of a pattern, without padding. Bits after the last byte are 0.
 *
 * @param pattern of ASCII texts
 */
export function base64Of(pattern: Pattern): Pattern {
  const texts = automatonOf(pattern);
  const places: Place[] = texts.length > 0 ? [{ state: 0, count: 0, bits: 0 }] : [];
  const numbers = new Map(places.map((place, number) => [keyOf(place), number]));
  const states: State[] = [];
  for (let at = 0; at < places.length; at++) {
    const place = places[at];
    const moves: State["moves"][number][] = [];
    for (const [digit, set] of digits.entries()) {
      const next = after(place, digit, texts);
      if (!next) continue;
      const key = keyOf(next);
      if (!numbers.has(key)) numbers.set(key, places.push(next) - 1);
      moves.push([set, numbers.get(key)!]);
    }
    const isWhole = place.count < 6 && place.bits === 0;
    states.push({ accepts: isWhole && texts[place.state].accepts, moves });
  }
  return { kind: "states", states };
}

const keyOf = ({ state, count, bits }: Place): string => `${state} ${count} ${bits}`;

/** Returns the place that the six bits of a digit lead to; undefined if no text has these bits here. */
function after({ state, count, bits }: Place, digit: number, texts: Automaton): Place | undefined {
  const all = (bits << 6) | digit;
  if (count === 0) return movesTo(texts[state], all << 2, (all << 2) | 3) && { state, count: 6, bits: all };
  const left = count - 2;
  const move = movesTo(texts[state], all >> left, all >> left);
  return move && { state: move[1], count: left, bits: all & ((1 << left) - 1) };
}

/** Returns a move by a byte from `least` to `most`. */
const movesTo = ({ moves }: State, least: number, most: number) =>
  moves.find(([set]) => set.some(([first, last]) => first <= most && least <= last));
