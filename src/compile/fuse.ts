/**
 * Finds chains of elementwise or rowwise calls. They run on pieces that fit in the L1 cache: one piece passes through
 * all calls before the next one starts. The calls do not change, so results are bitwise the same. Elementwise calls
 * after a matrix product are its epilogue: they run on each part of its result.
 */
import { lastElement } from "../core/collections.ts";
import { type Link, linksOf } from "./links.ts";
import { productLink } from "./products.ts";
import type { Entry, RecordedCall, Recording } from "./recording.ts";

/** A chain of calls that runs in pieces. */
export interface Fusion {
  /** The indices of successive calls. */
  readonly calls: readonly number[];
  /** Whether the first call is a matrix product. */
  readonly startsWithProduct: boolean;
  /** Elements or rows. */
  readonly units: number;
  /** Elements of a unit: 1 or the length of a row. */
  readonly width: number;
  /** Units of a piece. */
  readonly piece: number;
  readonly links: readonly Link[];
  /** Results that only the chain needs, with the number of their buffer. */
  readonly locals: ReadonlyMap<Entry, number>;
  /** The number of buffers. */
  readonly buffers: number;
}

/** A chain of 8 pieces of float32 with their operands fits the L1 cache of 32 KB. */
const PIECE = 2048;

/** Smaller results fit the L1 cache as a whole; then pieces would only add calls. */
const LEAST_ELEMENTS = 2 * PIECE;

/** Results of this many bytes leave the caches; alone, elementwise calls write them with nontemporal stores. */
const STREAMED = 16 * 2 ** 20;

export interface FuseOptions {
  /** The entries that outlive the function. */
  readonly results: ReadonlySet<Entry>;
  /** The indices of the calls to perform. */
  readonly needed: ReadonlySet<number>;
  /** Whether the last bits of results may change. */
  readonly isFast: boolean;
}

/** Returns the chains of at least two calls. */
export function fuse({ calls }: Recording, { results, needed, isFast }: FuseOptions): Fusion[] {
  const fusions: Fusion[] = [];
  for (let at = 0; at < calls.length; at++) {
    if (!needed.has(at)) continue;
    const end = calls.findIndex((_, next) => next > at && !needed.has(next));
    const following = end < 0 ? calls : calls.slice(0, end);
    const epilogue = epilogueFrom(following, at, isFast);
    const longest = epilogue.length > 0 ? epilogue : longestFrom(following, at, isFast);
    if (longest.length < 2) continue;
    fusions.push(fusionOf(calls, at, longest, results));
    at += longest.length - 1;
  }
  return fusions;
}

/** Returns the links of the longest chain that starts with a call. */
function longestFrom(calls: readonly RecordedCall[], at: number, isFast: boolean): readonly Link[] {
  if (at >= calls.length) return [];
  const found = linksOf(calls[at], { isFast }).map((first) => chainFrom(calls, at, first, isFast));
  return found.reduce<readonly Link[]>((best, links) => (links.length > best.length ? links : best), []);
}

/**
 * Returns the links of a matrix product and its epilogue. Returns none if the calls after the product do not read its
 * result, or form a longer chain without it.
 */
function epilogueFrom(calls: readonly RecordedCall[], at: number, isFast: boolean): readonly Link[] {
  const first = productLink(calls[at]);
  const next = calls[at + 1];
  if (
    !first ||
    calls[at].operands[first.result]!.bytes >= STREAMED ||
    !next?.operands.includes(calls[at].operands[first.result]!)
  )
    return [];
  const links = chainFrom(calls, at, first, isFast);
  const isLonger = links.length > 1 && links.length > longestFrom(calls, at + 1, isFast).length;
  return isLonger ? links : [];
}

/** Returns the links of successive calls that continue a chain. An epilogue computes parts of rows. */
function chainFrom(calls: readonly RecordedCall[], at: number, first: Link, isFast: boolean): Link[] {
  const links: Link[] = [];
  if (first.units * first.width < LEAST_ELEMENTS) return links;
  const startsWithProduct = isProduct(calls[at]);
  for (let next = at; next < calls.length; next++) {
    const fits = ({ units, width, isThin }: Link) =>
      units === first.units && width === first.width && !(startsWithProduct && isThin);
    const link = next === at ? first : linksOf(calls[next], { width: first.width, isFast }).find(fits);
    if (!link || !isFree(calls, at, links, link)) break;
    links.push(link);
  }
  // at the end of a chain, operations on one element per row gain nothing
  const readsRows = ({ operands }: Link) => operands.some(({ step }) => step === first.width);
  while (links.at(-1)?.isThin && !readsRows(lastElement(links))) links.pop();
  return links;
}

/**
 * Whether a call may join a chain: an operand that the chain writes must be read in the same unit, and the call's
 * result must not be one of the chain's operands.
 */
function isFree(calls: readonly RecordedCall[], first: number, links: readonly Link[], link: Link): boolean {
  const { operands } = calls[first + links.length];
  const result = operands[link.result]!;
  for (const [index, before] of links.entries()) {
    const { operands: earlier } = calls[first + index];
    if (earlier.includes(result)) return false;
    const written = earlier[before.result]!;
    const { step, start } = before.operands[before.result];
    for (const [at, entry] of operands.entries()) {
      const { step: ownStep, start: ownStart } = link.operands[at];
      if (entry === written && (ownStep !== step || ownStart !== start)) return false;
    }
  }
  return true;
}

function fusionOf(
  calls: readonly RecordedCall[],
  first: number,
  links: readonly Link[],
  results: ReadonlySet<Entry>,
): Fusion {
  const last = first + links.length - 1;
  const locals = new Map<Entry, number>();
  const users: Entry[] = []; // the last call that uses each buffer
  const startsWithProduct = isProduct(calls[first]);
  for (let at = startsWithProduct ? first + 1 : first; at < last; at++) {
    const entry = calls[at].operands[links[at - first].result]!;
    if (entry.first !== at || entry.last > last || results.has(entry)) continue;
    const free = users.findIndex((user) => user.last < at);
    const buffer = free < 0 ? users.length : free;
    users[buffer] = entry;
    locals.set(entry, buffer);
  }
  const { units, width } = links[0];
  return {
    startsWithProduct,
    units,
    width,
    links,
    locals,
    buffers: users.length,
    piece: Math.max(1, Math.floor(PIECE / width)),
    calls: links.map((_, at) => first + at),
  };
}

const isProduct = ({ call }: RecordedCall): boolean => call.description.name === "matmul";
