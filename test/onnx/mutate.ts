/**
 * Reads ONNX files as trees of fields. Mutates them and keeps their lengths consistent: removes, duplicates and swaps
 * fields, and changes values.
 */
import type { Random } from "../ops/samples.ts";

/** A field of a protocol buffer: a number, bytes, or a message. */
export interface Node {
  readonly field: number;
  readonly wire: number;
  bytes: Uint8Array;
  /** The fields of a message. */
  children: Node[] | undefined;
}

/** The fields of ONNX's messages that are messages, by their path of field numbers from a graph or functions. */
const MESSAGES: ReadonlySet<string> = new Set([
  "7",
  "8",
  "14",
  "25",
  "7.1",
  "7.5",
  "7.11",
  "7.12",
  "7.1.5",
  "7.1.5.5",
  "7.1.5.6",
  "7.11.2",
  "7.11.2.1",
  "7.11.2.1.2",
  "7.11.2.1.2.1",
  "7.12.2",
  "7.12.2.1",
  "7.12.2.1.2",
  "25.7",
  "25.9",
  "25.7.5",
  "25.7.5.5",
  "7.5.13",
]);

function varint(bytes: Uint8Array, at: number): readonly [value: number, next: number] {
  let [value, scale, next] = [0, 1, at];
  for (; next < bytes.length; scale *= 128) {
    const byte = bytes[next++];
    value += (byte & 127) * scale;
    if (byte < 128) break;
  }
  return [value, next];
}

/** Parses a file. @param path the field numbers of the message around the bytes; empty for a model */
export function parse(bytes: Uint8Array, path = ""): Node[] {
  const nodes: Node[] = [];
  for (let at = 0; at < bytes.length; ) {
    const [key, start] = varint(bytes, at);
    const [field, wire] = [Math.floor(key / 8), key % 8];
    let [from, to] = [start, start];
    if (wire === 0) to = varint(bytes, start)[1];
    else if (wire === 2) {
      const [length, next] = varint(bytes, start);
      [from, to] = [next, next + length];
    } else to = start + (wire === 1 ? 8 : 4);
    const inner = path === "" ? `${field}` : `${path}.${field}`;
    const content = bytes.slice(from, to);
    // Graphs in attributes have the fields of the graph.
    const known = inner.replace(/^7(?:\.1\.5\.6)+/, "7");
    nodes.push({ field, wire, bytes: content, children: MESSAGES.has(known) ? parse(content, known) : undefined });
    at = to;
  }
  return nodes;
}

function varintOf(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  return [...bytes, rest];
}

/** Returns the bytes of fields. */
export const encode = (nodes: readonly Node[]): Uint8Array =>
  Buffer.concat(
    nodes.map(({ field, wire, bytes, children }) => {
      const content = children ? encode(children) : bytes;
      return Buffer.concat([
        Uint8Array.from(varintOf(field * 8 + wire)),
        ...(wire === 2 ? [Uint8Array.from(varintOf(content.length))] : []),
        content,
      ]);
    }),
  );

/** Lists fields and the fields in them, each with its siblings. */
export const allOf = (nodes: Node[]): { readonly node: Node; readonly list: Node[] }[] =>
  nodes.flatMap((node) => [{ node, list: nodes }, ...(node.children ? allOf(node.children) : [])]);

/** Unexpected sizes, axes, types and counts. */
const NUMBERS = [0, 1, 2, 3, 5, 7, 8, 10, 11, 16, 17, 22, 24, 26, 127, 255, 65_536, 2 ** 31 - 1, 2 ** 31, 2 ** 40];
/** −1, the minimum of int64, and −7. */
const NEGATIVE = [
  [...new Array<number>(9).fill(255), 1],
  [...new Array<number>(9).fill(128), 1],
  [249, ...new Array<number>(8).fill(255), 1],
];

/** Returns a file with some of its fields changed. */
export function mutated(model: Uint8Array, random: Random): Uint8Array {
  const tree = parse(model);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random.next() * list.length)]!;
  for (let count = 1 + Math.floor(random.next() * 3); count > 0; count--) {
    const all = allOf(tree);
    if (all.length === 0) break;
    const { node, list } = pick(all);
    const way = random.next();
    if (node.children === undefined && way < 0.6) changeValue(node, all, random, pick);
    else if (way < 0.75) list.splice(list.indexOf(node), 1);
    else if (way < 0.9) list.push({ ...node, children: node.children && [...node.children] });
    else {
      const other = pick(all).node;
      [node.bytes, other.bytes] = [other.bytes, node.bytes];
    }
  }
  return new Uint8Array(encode(tree));
}

function changeValue(
  node: Node,
  all: readonly { readonly node: Node }[],
  random: Random,
  pick: <T>(list: readonly T[]) => T,
): void {
  if (node.wire === 0) {
    node.bytes = Uint8Array.from(random.next() < 0.25 ? pick(NEGATIVE) : varintOf(pick(NUMBERS)));
    return;
  }
  const alike = all.filter((each) => each.node.wire === node.wire && !each.node.children);
  if (random.next() < 0.6) node.bytes = pick(alike).node.bytes;
  else if (node.bytes.length > 0) {
    const bytes = new Uint8Array(node.bytes);
    bytes[Math.floor(random.next() * bytes.length)] = Math.floor(random.next() * 256);
    node.bytes = random.next() < 0.3 && node.wire === 2 ? bytes.slice(0, bytes.length >> 1) : bytes;
  }
}
