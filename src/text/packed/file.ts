/**
 * The file format of packed tokenizers: magic, length of the header, header in JSON, arrays aligned to 8 bytes, and a
 * hash of everything before it.
 */
import type { TokenizerJson } from "../tokenizer_file.ts";
import { type BpeArrays, PackedBpe } from "./bpe.ts";
import { PackedUnigram, type UnigramArrays } from "./unigram.ts";

/** A packed vocabulary. */
export type Packed = PackedBpe | PackedUnigram;

/** A `tokenizer.json` with its vocabulary packed separately. */
export interface PackedTokenizer {
  readonly json: TokenizerJson;
  readonly packed: Packed;
}

/** Identifies this version of the layout. */
const MAGIC = "ORCHTOK2";
const HEADER_AT = 16;
const HASH_BYTES = 8;

const textTypes = { units: Uint16Array, ends: Uint32Array, slots: Int32Array } as const;
const types = {
  BPE: {
    ...textTypes,
    ids: Int32Array,
    entries: Int32Array,
    left: Int32Array,
    right: Int32Array,
    ranks: Int32Array,
  } as const satisfies Record<keyof BpeArrays, unknown>,
  Unigram: {
    ...textTypes,
    scores: Float64Array,
    starts: Uint8Array,
  } as const satisfies Record<keyof UnigramArrays, unknown>,
};

/** The arrays of a vocabulary. The kind determines their names and types. */
type Arrays = Readonly<Record<string, Uint8Array | Uint16Array | Uint32Array | Int32Array | Float64Array>>;

const kindOf = ({ model }: TokenizerJson): keyof typeof types => (model.type === "Unigram" ? "Unigram" : "BPE");

interface Header {
  readonly json: TokenizerJson;
  readonly lengths: Readonly<Record<string, number>>;
}

const aligned = (place: number): number => Math.ceil(place / 8) * 8;
const hashOf = (bytes: Uint8Array): bigint => BigInt(Bun.hash(bytes));

export function encodePacked({ json, packed }: PackedTokenizer): Uint8Array {
  const arrays = packed.arrays as unknown as Arrays;
  const names = Object.keys(types[kindOf(json)]);
  const lengths = Object.fromEntries(names.map((name) => [name, arrays[name].length]));
  const header = new TextEncoder().encode(JSON.stringify({ json, lengths } satisfies Header));
  let place = aligned(HEADER_AT + header.byteLength);
  const places = names.map((name) => {
    const start = place;
    place = aligned(start + arrays[name].byteLength);
    return start;
  });
  const bytes = new Uint8Array(place + HASH_BYTES);
  const view = new DataView(bytes.buffer);
  bytes.set(new TextEncoder().encode(MAGIC));
  view.setUint32(MAGIC.length, header.byteLength, true);
  bytes.set(header, HEADER_AT);
  for (const [at, name] of names.entries()) {
    const { buffer, byteOffset, byteLength } = arrays[name];
    bytes.set(new Uint8Array(buffer, byteOffset, byteLength), places[at]);
  }
  view.setBigUint64(place, hashOf(bytes.subarray(0, place)), true);
  return bytes;
}

/** Decodes a file; undefined for other or damaged files. @param bytes must start at offset 0 of their buffer */
export function decodePacked(bytes: Uint8Array<ArrayBuffer>): PackedTokenizer | undefined {
  const end = bytes.byteLength - HASH_BYTES;
  if (end < HEADER_AT || new TextDecoder("latin1").decode(bytes.subarray(0, MAGIC.length)) !== MAGIC) return undefined;
  const view = new DataView(bytes.buffer);
  if (view.getBigUint64(end, true) !== hashOf(bytes.subarray(0, end))) return undefined;
  const headerEnd = HEADER_AT + view.getUint32(MAGIC.length, true);
  const { json, lengths } = JSON.parse(new TextDecoder().decode(bytes.subarray(HEADER_AT, headerEnd))) as Header;
  let place = aligned(headerEnd);
  const kind = kindOf(json);
  const entries = Object.entries(types[kind]).map(([name, type]) => {
    const array = new type(bytes.buffer, place, lengths[name]);
    place = aligned(place + array.byteLength);
    return [name, array] as const;
  });
  const arrays: unknown = Object.fromEntries(entries);
  return {
    json,
    packed: kind === "BPE" ? new PackedBpe(arrays as BpeArrays) : new PackedUnigram(arrays as UnigramArrays),
  };
}
