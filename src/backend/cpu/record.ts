/**
 * Records the calls of the cpu dylib (`ORCHARD_CPU_RECORD`), so that `bun run check:sanitize` can replay them under
 * sanitizers. There is one file per thread; `native/replay/records.h` describes and reads the format.
 */
import { ptr } from "bun:ffi";
import { mkdirSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { threadId } from "../../core/thread.ts";
import { Status } from "./abi.ts";
import type { Native } from "./loader.ts";
import { singleRows } from "./single_rows.ts";
import { readText } from "./status.ts";

/** A function of the dylib, as `orchard_cpu_tables` describes it. */
interface RecordedFunction {
  readonly name: string;
  readonly blockBytes: number;
  readonly operands: number;
}

/** The start of a file of calls; the last digit is the version of the layout. */
const signature = "ORCALLS1";

/** How an operand is recorded: with contents, as omitted, or else as the index of an equal earlier operand. */
const Place = { separate: -1, leftOut: -2 } as const;

/** Operands are replayed at the same offset modulo this, which is at least any vector's alignment. */
const alignment = 64;

/** Maximum recorded bytes of an operand. Replay repeats them for larger operands. */
const mostContents = 2 ** 12;

/** Calls whose operands have more bytes in total are recorded without contents, only for counting. */
const mostBytes = 2 ** 28;

interface Operand {
  readonly place: number;
  /** The operand's address modulo {@link alignment}. */
  readonly shift: number;
  readonly bytes: number;
  readonly contents: Uint8Array;
}

type RunName = Exclude<Extract<keyof Native, `orchard_cpu_run${string}`>, "orchard_cpu_run_rows">;
type RunRows = (...values: Parameters<Native["orchard_cpu_run_rows"]>) => number;
type AnyRun = (...values: readonly unknown[]) => number;

/**
 * Wraps the dylib's functions so that those that run an operation also record the call in a file of `folder`. If calls
 * differ only in the contents of their operands, only one of them is recorded.
 */
export function recordCalls(native: Native, folder: string): Native {
  mkdirSync(folder, { recursive: true });
  const text = readText((buffer, capacity) => native.orchard_cpu_tables(buffer, capacity));
  const { functions } = JSON.parse(text) as { readonly functions: readonly RecordedFunction[] };
  const recorder = new Recorder(join(folder, `${process.pid}-${threadId()}.calls`), functions);
  const names = Object.keys(native).filter((name): name is RunName => /^orchard_cpu_run\d+$/.test(name));
  const runs = names.map((name) => [name, recorder.wrap(native[name] as AnyRun)] as const);
  const rows = { orchard_cpu_run_rows: recorder.wrapRows(native.orchard_cpu_run_rows) };
  return { ...native, ...Object.fromEntries(runs), ...rows } as Native;
}

class Recorder {
  private readonly file: number;
  private readonly functions: readonly RecordedFunction[];
  private readonly known = new Set<string>();

  constructor(path: string, functions: readonly RecordedFunction[]) {
    this.file = openSync(path, "w");
    this.functions = functions;
    writeSync(this.file, signature);
  }

  /** Wraps a function to record its arguments before it runs, and its status. */
  wrap(run: AnyRun): AnyRun {
    return (...values) => {
      const record = this.recordOf(values);
      const status = run(...values);
      // Running out of memory depends on the rest of the process, which is not recorded.
      if (record && status !== Status.outOfMemory) writeSync(this.file, withStatus(record, status));
      return status;
    };
  }

  /** Wraps a function of rows in the same way. If all rows ran, each is recorded as a call. */
  wrapRows(run: RunRows): RunRows {
    return (ordinal, blocks, blockBytes, count, addresses) => {
      const { operands, name } = this.functions[ordinal];
      const numbers = blocks as Float64Array;
      const singles = singleRows(numbers.subarray(0, blockBytes / 8), addresses as Float64Array, { count, operands });
      const records = singles.map((row) => {
        const given = row.operands.map((operand) => operand ?? row.block);
        return this.recordOf([ordinal, row.block, name, ...given]);
      });
      const status = run(ordinal, blocks, blockBytes, count, addresses);
      if (status !== Status.ok) return status;
      for (const record of records) if (record) writeSync(this.file, withStatus(record, status));
      return status;
    };
  }

  private recordOf([ordinal, block, ...values]: readonly unknown[]): Uint8Array | undefined {
    const called = this.functions[ordinal as number];
    if (!called) return undefined;
    const given = values.filter((value) => ArrayBuffer.isView(value)).slice(0, called.operands);
    const numbers = bytesOf(block as Float64Array).subarray(0, called.blockBytes);
    const operands = describe(given as NodeJS.TypedArray[], block);
    const key = [called.name, Bun.hash(numbers), ...operands.flatMap(({ place, bytes }) => [place, bytes])].join(" ");
    if (this.known.has(key)) return undefined;
    this.known.add(key);
    return encode(called.name, numbers, operands);
  }
}

const bytesOf = ({ buffer, byteOffset, byteLength }: NodeJS.TypedArray): Uint8Array<ArrayBufferLike> =>
  new Uint8Array(buffer, byteOffset, byteLength);

function describe(given: readonly NodeJS.TypedArray[], block: unknown): Operand[] {
  const total = given.reduce((sum, operand) => sum + (operand === block ? 0 : operand.byteLength), 0);
  const most = total > mostBytes ? 0 : mostContents;
  return given.map((operand, at) => {
    const place = placeOf(operand, given.slice(0, at), block);
    if (place === Place.leftOut) return { place, shift: 0, bytes: 0, contents: new Uint8Array() };
    const all = bytesOf(operand);
    const contents = place === Place.separate ? all.subarray(0, most) : new Uint8Array();
    return { place, shift: all.length === 0 ? 0 : ptr(all) % alignment, bytes: all.length, contents };
  });
}

function placeOf(operand: NodeJS.TypedArray, earlier: readonly NodeJS.TypedArray[], block: unknown): number {
  if (operand === block) return Place.leftOut;
  const same = earlier.findIndex(
    ({ buffer, byteOffset, byteLength }) =>
      buffer === operand.buffer && byteOffset === operand.byteOffset && byteLength === operand.byteLength,
  );
  return same < 0 ? Place.separate : same;
}

/** Offset of the status in a record. */
const statusAt = 4;

function encode(name: string, block: Uint8Array, operands: readonly Operand[]): Uint8Array {
  const text = new TextEncoder().encode(name);
  const heads = new DataView(new ArrayBuffer(operands.length * 16));
  for (const [at, { place, shift, bytes, contents }] of operands.entries()) {
    heads.setInt16(at * 16, place, true);
    heads.setUint16(at * 16 + 2, shift, true);
    heads.setUint32(at * 16 + 4, contents.length, true);
    heads.setFloat64(at * 16 + 8, bytes, true);
  }
  const parts = [text, new Uint8Array(heads.buffer), block, ...operands.map(({ contents }) => contents)];
  const head = new DataView(new ArrayBuffer(16));
  head.setUint32(
    0,
    parts.reduce((sum, { length }) => sum + length, head.byteLength),
    true,
  );
  head.setUint16(8, text.length, true);
  head.setUint16(10, operands.length, true);
  head.setUint32(12, block.length, true);
  return Buffer.concat([new Uint8Array(head.buffer), ...parts]);
}

function withStatus(record: Uint8Array, status: number): Uint8Array {
  new DataView(record.buffer, record.byteOffset).setInt32(statusAt, status, true);
  return record;
}
