/** Checks texts against a constraint, byte by byte. */
import { data, text } from "../../../src/index.ts";
import type { TokenConstraint } from "../../../src/text/constraint/token_constraint.ts";

export const bytes = new data.ByteTokenizer();
/** A byte that never occurs in UTF-8: it ends the texts. */
const END = 0xff;

export const regex = (source: string): Promise<TokenConstraint> => text.compileConstraint(bytes, { regex: source });

/** Whether a text is complete under a constraint. */
export async function accepts(form: TokenConstraint, own: string | Uint8Array): Promise<boolean> {
  using matcher = await form.start(new Set([END]));
  for (const byte of typeof own === "string" ? new TextEncoder().encode(own) : own) {
    if (!allowed(matcher).includes(byte)) return false;
    await matcher.accept(byte);
  }
  return allowed(matcher).includes(END);
}

/**
 * Draws a text that satisfies the constraint, by numbers from 0 to 1; undefined if it does not end within this many
 * bytes.
 */
export async function drawn(form: TokenConstraint, random: () => number, most = 60): Promise<Uint8Array | undefined> {
  using matcher = await form.start(new Set([END]));
  const own: number[] = [];
  while (own.length < most) {
    const next = allowed(matcher);
    const byte = next[Math.floor(random() * next.length)];
    if (byte === END) return Uint8Array.from(own);
    own.push(byte);
    await matcher.accept(byte);
  }
  return undefined;
}

function allowed(matcher: Awaited<ReturnType<TokenConstraint["start"]>>): number[] {
  const scores = new Float64Array(256);
  matcher.forbid(scores);
  return [...scores.keys()].filter((byte) => scores[byte] === 0);
}

/** Numbers from 0 to 1 (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let own = Math.imul(state ^ (state >>> 15), 1 | state);
    own = (own + Math.imul(own ^ (own >>> 7), 61 | own)) ^ own;
    return ((own ^ (own >>> 14)) >>> 0) / 2 ** 32;
  };
}
