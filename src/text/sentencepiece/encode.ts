/**
 * Splits normalized text into pieces, as SentencePiece does.
 *
 * Sources: `Model::EncodeOptimized` in unigram_model.cc and `Model::SampleEncode` in bpe_model.cc of
 * https://github.com/google/sentencepiece/tree/v0.2.3/src.
 */
import { lastElement } from "../../core/collections.ts";
import { packUnigram } from "../packed/unigram.ts";
import { PieceType, type SentencePieceModel } from "./model.ts";

/** A part of a text: a piece, or unknown text. */
export interface Part {
  readonly text: string;
  /** The id of the piece; for unknown text, the id of the unknown piece. */
  readonly id: number;
}

const isInTrie = (type: number): boolean =>
  type === PieceType.normal || type === PieceType.ofUser || type === PieceType.unused;

/** Returns a function that splits a normalized text. */
export function splitterOf(model: SentencePieceModel): (normalized: string) => Part[] {
  const split = model.kind === "unigram" ? unigramSplitter(model) : bpeSplitter(model);
  const bytes = model.pieces.flatMap(({ text, type }, id) => (type === PieceType.byte ? [[text, id] as const] : []));
  const byteIds = new Map(bytes);
  return (normalized) => (normalized === "" ? [] : joined(split(normalized), model, byteIds));
}

/** Joins neighboring unknown texts, or replaces them by pieces of their bytes. */
function joined(
  parts: readonly Part[],
  { unknown, byteFallback }: SentencePieceModel,
  byteIds: ReadonlyMap<string, number>,
): Part[] {
  const found: Part[] = [];
  for (const part of parts) {
    const last = found.at(-1);
    if (part.id !== unknown) found.push(part);
    else if (byteFallback)
      for (const byte of new TextEncoder().encode(part.text)) {
        const text = `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`;
        found.push({ text, id: byteIds.get(text) ?? unknown });
      }
    else if (last?.id === unknown) found[found.length - 1] = { text: last.text + part.text, id: unknown };
    else found.push(part);
  }
  return found;
}

/** The difference between the lowest score and the score of unknown text. */
const UNKNOWN_BELOW = 10;

/** Returns the most probable split. Scores are added in float32. */
function unigramSplitter({ pieces, unknown }: SentencePieceModel): (normalized: string) => Part[] {
  const trie = packUnigram(
    pieces.map(({ text, score }) => [text, score]),
    unknown,
  );
  const normal = pieces.filter(({ type }) => type === PieceType.normal).map(({ score }) => score);
  const least = normal.reduce((low, score) => Math.min(low, score), 3.4028234663852886e38);
  const most = normal.reduce((high, score) => Math.max(high, score), 1.1754943508222875e-38);
  const unknownScore = Math.fround(least - UNKNOWN_BELOW);
  const scoreOf = (id: number, text: string) =>
    pieces[id].type === PieceType.ofUser ? Buffer.byteLength(text) * most - 0.1 : pieces[id].score;
  return (normalized) => {
    const characters = [...normalized];
    const scores = new Float32Array(characters.length + 1);
    const [starts, ids] = [new Int32Array(scores.length).fill(-1), new Int32Array(scores.length)];
    const offer = (start: number, end: number, id: number, score: number) => {
      const sum = score + scores[start];
      if (starts[end] >= 0 && !(sum > scores[end])) return;
      [starts[end], ids[end], scores[end]] = [start, id, sum];
    };
    for (let start = 0; start < characters.length; start++) {
      let hasCharacter = false;
      for (const text of trie?.prefixes(characters, start) ?? []) {
        const id = trie!.idOf(text)!;
        if (!isInTrie(pieces[id].type) || pieces[id].type === PieceType.unused) continue;
        const length = [...text].length;
        offer(start, start + length, id, scoreOf(id, text));
        hasCharacter ||= length === 1;
      }
      if (!hasCharacter) offer(start, start + 1, unknown, unknownScore);
    }
    const parts: Part[] = [];
    for (let end = characters.length; end > 0; end = starts[end])
      parts.push({ text: characters.slice(starts[end], end).join(""), id: ids[end] });
    return parts.reverse();
  };
}

interface Symbol {
  text: string;
  previous: number;
  next: number;
  readonly isFrozen: boolean;
}

/** Merges neighbors to the piece with the highest score, from the left. */
function bpeSplitter({ pieces, unknown }: SentencePieceModel): (normalized: string) => Part[] {
  const ids = new Map(pieces.flatMap(({ text, type }, id) => (isInTrie(type) ? [[text, id] as const] : [])));
  const ofUser = pieces.filter(({ type }) => type === PieceType.ofUser).map(({ text }) => text);
  ofUser.sort((a, b) => b.length - a.length);
  return (normalized) => {
    const symbols = symbolsOf(normalized, ofUser);
    const undone = new Map<string, readonly [string, string]>();
    const candidates: {
      readonly left: number;
      readonly right: number;
      readonly score: number;
      readonly size: number;
    }[] = [];
    const isBefore = (a: number, b: number) =>
      candidates[a].score > candidates[b].score ||
      (candidates[a].score === candidates[b].score && candidates[a].left < candidates[b].left);
    const heap: number[] = [];
    const offer = (left: number, right: number) => {
      if (left < 0 || right < 0 || symbols[left].isFrozen || symbols[right].isFrozen) return;
      const text = symbols[left].text + symbols[right].text;
      const id = ids.get(text);
      if (id === undefined) return;
      candidates.push({ left, right, score: pieces[id].score, size: text.length });
      pushTo(heap, candidates.length - 1, isBefore);
      if (pieces[id].type === PieceType.unused) undone.set(text, [symbols[left].text, symbols[right].text]);
    };
    for (let at = 1; at < symbols.length; at++) offer(at - 1, at);
    while (heap.length > 0) {
      const { left, right, size } = candidates[popFrom(heap, isBefore)];
      const [a, b] = [symbols[left], symbols[right]];
      if (a.text === "" || b.text === "" || a.text.length + b.text.length !== size) continue;
      a.text += b.text;
      a.next = b.next;
      if (b.next >= 0) symbols[b.next].previous = left;
      b.text = "";
      offer(a.previous, left);
      offer(left, a.next);
    }
    const parts: Part[] = [];
    const add = (text: string): void => {
      const id = ids.get(text) ?? unknown;
      const pair = pieces[id].type === PieceType.unused ? undone.get(text) : undefined;
      if (pair) for (const part of pair) add(part);
      else parts.push({ text, id });
    };
    for (const { text } of symbols) if (text !== "") add(text);
    return parts;
  };
}

/** Splits a text into characters and pieces of the user. */
function symbolsOf(normalized: string, ofUser: readonly string[]): Symbol[] {
  const symbols: Symbol[] = [];
  for (let at = 0; at < normalized.length; ) {
    const kept = ofUser.find((text) => normalized.startsWith(text, at));
    const text = kept ?? String.fromCodePoint(normalized.codePointAt(at)!);
    at += text.length;
    symbols.push({ text, previous: symbols.length - 1, next: symbols.length + 1, isFrozen: kept !== undefined });
  }
  if (symbols.length > 0) lastElement(symbols).next = -1;
  return symbols;
}

/** Adds an item to a heap. The first item of a heap precedes all others. */
function pushTo(heap: number[], item: number, isBefore: (a: number, b: number) => boolean): void {
  let at = heap.push(item) - 1;
  for (let above = (at - 1) >> 1; at > 0 && isBefore(item, heap[above]); above = (at - 1) >> 1) {
    heap[at] = heap[above];
    at = above;
  }
  heap[at] = item;
}

/** Removes the first item of a heap. */
function popFrom(heap: number[], isBefore: (a: number, b: number) => boolean): number {
  const first = heap[0];
  const item = heap.pop()!;
  if (heap.length === 0) return first;
  let at = 0;
  for (let below = 1; below < heap.length; below = 2 * at + 1) {
    if (below + 1 < heap.length && isBefore(heap[below + 1], heap[below])) below++;
    if (!isBefore(heap[below], item)) break;
    heap[at] = heap[below];
    at = below;
  }
  heap[at] = item;
  return first;
}
