/**
 * Reads SentencePiece's model files. Field numbers are from
 * https://github.com/google/sentencepiece/blob/v0.2.3/src/sentencepiece_model.proto.
 */
import type { PbfReader } from "pbf";
import { messageOf } from "../../core/causes.ts";
import { FileFormatError } from "../../core/errors.ts";

/** Types of pieces. */
export const PieceType = { normal: 1, unknown: 2, control: 3, ofUser: 4, unused: 5, byte: 6 } as const;

/** A piece of the vocabulary. */
export interface Piece {
  readonly text: string;
  /** The logarithm of the piece's probability, or the piece's priority. A float32. */
  readonly score: number;
  readonly type: number;
}

/** The contents of a model file. */
export interface SentencePieceModel {
  /** The pieces; the index is the id. */
  readonly pieces: readonly Piece[];
  readonly kind: "unigram" | "bpe";
  /** Whether unknown characters become pieces of their bytes. */
  readonly byteFallback: boolean;
  readonly unknown: number;
  /** The table of replaced characters: see {@link Charsmap}. Empty if there is none. */
  readonly charsmap: Uint8Array;
  /** Whether texts are prefixed with a space. */
  readonly addsPrefix: boolean;
  /** Whether spaces at the ends are removed, and runs of spaces become one. */
  readonly trimsSpaces: boolean;
}

const kinds: Readonly<Record<number, SentencePieceModel["kind"]>> = { 1: "unigram", 2: "bpe" };

/** Reads the fields of a message by number. Other fields are skipped. */
function fieldsOf(pbf: PbfReader, end: number, fields: Readonly<Record<number, () => void>>): void {
  while (pbf.pos < end) {
    const tag = pbf.readVarint();
    const read = fields[tag >> 3];
    if (read) read();
    else pbf.skip(tag);
  }
}

/** Reads a SentencePiece model. @throws {FileFormatError} for a damaged file, and unsupported kinds of models. */
export function readSentencePiece(bytes: Uint8Array, path: string): SentencePieceModel {
  const { PbfReader } = require("pbf") as typeof import("pbf"); // lazily: most programs read no such file
  const fail = (message: string) => new FileFormatError("loadTokenizer", "notATokenizer", path, message);
  const pieces: Piece[] = [];
  let [kind, byteFallback, unknown, suffix] = [1, false, 0, false];
  let [charsmap, addsPrefix, trimsSpaces, escapes]: [Uint8Array, boolean, boolean, boolean] = [
    new Uint8Array(),
    ...([true, true, true] as const),
  ];
  const pbf = new PbfReader(bytes);
  const message = (fields: Readonly<Record<number, () => void>>) => () => {
    const length = pbf.readVarint();
    fieldsOf(pbf, Math.min(bytes.length, pbf.pos + length), fields);
  };
  const piece = () => {
    let [text, score, type] = ["", 0, PieceType.normal as number];
    message({
      1: () => (text = pbf.readString()),
      2: () => (score = pbf.readFloat()),
      3: () => (type = pbf.readVarint()),
    })();
    pieces.push({ text, score, type });
  };
  const trainer = message({
    3: () => (kind = pbf.readVarint()),
    24: () => (suffix = pbf.readBoolean()),
    35: () => (byteFallback = pbf.readBoolean()),
    40: () => (unknown = pbf.readVarint()),
  });
  const normalizer = message({
    2: () => (charsmap = pbf.readBytes()),
    3: () => (addsPrefix = pbf.readBoolean()),
    4: () => (trimsSpaces = pbf.readBoolean()),
    5: () => (escapes = pbf.readBoolean()),
  });
  try {
    fieldsOf(pbf, bytes.length, { 1: piece, 2: trainer, 3: normalizer });
  } catch (cause) {
    throw fail(`expected a SentencePiece model: ${messageOf(cause)}`);
  }
  const found = kinds[kind];
  if (found === undefined) throw fail(`expected a unigram or BPE model, got model type ${kind}`);
  if (!escapes || suffix) throw fail("expected a model that writes spaces as ▁ before words");
  if (pieces[unknown]?.type !== PieceType.unknown) throw fail(`expected an unknown piece with id ${unknown}`);
  return { pieces, kind: found, byteFallback, unknown, charsmap, addsPrefix, trimsSpaces };
}
