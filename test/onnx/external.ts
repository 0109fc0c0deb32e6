/** Moves the tensors of ONNX files to other files, as exporters do with large ones. */
import type { Random } from "../ops/samples.ts";
import { allOf, encode, type Node, parse } from "./mutate.ts";
import { message, text, varint } from "./write.ts";

/** Fields of TensorProto. */
const [FLOAT_DATA, RAW_DATA, EXTERNAL_DATA, DATA_LOCATION] = [4, 9, 13, 14];
/** Exporters align tensors to pages; the standard allows any position. */
const ALIGNMENTS = [1, 4, 64, 4096];
const NAMES = ["model.onnx_data", "weights/part-2.bin", "ünï code.data"];

/** A model whose tensors are in other files: their bytes by path, relative to the model's folder. */
export interface Externalized {
  readonly model: Uint8Array;
  readonly files: ReadonlyMap<string, Uint8Array>;
  /** The number of tensors in other files. */
  readonly count: number;
}

/** Moves each tensor with probability ¾ to a drawn position of one to three files, with other bytes between them. */
export function externalized(model: Uint8Array, random: Random): Externalized {
  const tree = parse(model);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random.next() * list.length)]!;
  const names = NAMES.slice(0, 1 + Math.floor(random.next() * NAMES.length));
  const pieces = new Map(names.map((name) => [name, [] as Uint8Array[]]));
  let count = 0;
  for (const { node, list } of allOf(tree)) {
    const content = contentOf(node);
    if (!content || !isTensor(node, list) || random.next() > 0.75) continue;
    const name = pick(names);
    const file = pieces.get(name)!;
    const alignment = pick(ALIGNMENTS);
    const size = Buffer.concat(file).length;
    const gap = Math.ceil((size + Math.floor(random.next() * 20)) / alignment) * alignment - size;
    file.push(new Uint8Array(gap).fill(0xa5), content);
    const entries = [`${name}`, `${size + gap}`, `${content.length}`];
    replace(node, entries);
    count++;
  }
  const files = new Map([...pieces].map(([name, parts]) => [name, Buffer.concat(parts)]));
  return { model: encode(tree), files, count };
}

/** Fields 5 are the tensors of a graph and of an attribute, and the attributes of a node, which has an operator. */
const isTensor = (node: Node, list: readonly Node[]): boolean =>
  node.field === 5 && !list.some(({ field, wire, children }) => field === 4 && wire === 2 && !children);

/** Returns the elements' bytes; undefined for other nodes, and for lists that have another form. */
function contentOf({ children }: Node): Uint8Array | undefined {
  const raw = children?.find(({ field, wire }) => field === RAW_DATA && wire === 2);
  if (raw) return raw.bytes;
  const lists = children?.filter(({ field }) => field === FLOAT_DATA) ?? [];
  const isFloat = children?.some(({ field, wire, bytes }) => field === 2 && wire === 0 && bytes[0] === 1);
  return isFloat && lists.length > 0 ? Buffer.concat(lists.map(({ bytes }) => bytes)) : undefined;
}

function replace(node: Node, [location, offset, length]: readonly string[]): void {
  const entry = (key: string, value: string) => message(EXTERNAL_DATA, [text(1, key), text(2, value)]);
  const entries = [entry("location", location), entry("offset", offset), entry("length", length)];
  const kept = node.children!.filter(({ field }) => field !== RAW_DATA && field !== FLOAT_DATA);
  node.children = [...kept, ...parse(Buffer.concat([...entries, varint(DATA_LOCATION, 1)]), "7.5")];
}
