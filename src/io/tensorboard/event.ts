/**
 * Encodes TensorBoard's events as protocol buffers, and as records of a file.
 *
 * Sources: `event.proto` and `summary.proto` of TensorBoard; a record is described in TensorFlow's `record_writer.h`.
 */
import { maskedCrc32c } from "./crc32c.ts";

/** The contents of an event besides its time: scalars of a step, the version of a file, or the start of a session. */
export interface EventContent {
  readonly step?: number;
  readonly fileVersion?: string;
  readonly scalars?: readonly (readonly [tag: string, value: number])[];
  /** Whether a session starts at the step: TensorBoard then drops the events of earlier sessions from this step on. */
  readonly startsSession?: boolean;
}

/** The numbers of the fields that are written. */
const fields = {
  event: { wallTime: 1, step: 2, fileVersion: 3, summary: 5, sessionLog: 7 },
  summary: { value: 1 },
  value: { tag: 1, simpleValue: 2 },
  sessionLog: { status: 1 },
} as const;
const SESSION_START = 1;

/** The wire type of a field: the lower three bits of its key. */
const wire = { varint: 0, eightBytes: 1, lengthDelimited: 2, fourBytes: 5 } as const;

/** Encodes an event. @param wallTime in seconds since 1970 */
export function encodeEvent(wallTime: number, { step, fileVersion, scalars, startsSession }: EventContent): Uint8Array {
  return joined([
    ...field(
      fields.event.wallTime,
      wire.eightBytes,
      fixed(8, (view) => view.setFloat64(0, wallTime, true)),
    ),
    ...(step ? field(fields.event.step, wire.varint, varint(step)) : []),
    ...(fileVersion === undefined ? [] : delimited(fields.event.fileVersion, utf8(fileVersion))),
    ...(scalars === undefined ? [] : delimited(fields.event.summary, encodeSummary(scalars))),
    ...(startsSession ? delimited(fields.event.sessionLog, encodeSession()) : []),
  ]);
}

const encodeSummary = (scalars: NonNullable<EventContent["scalars"]>): Uint8Array =>
  joined(
    scalars.flatMap(([tag, value]) =>
      delimited(
        fields.summary.value,
        joined([
          ...(tag === "" ? [] : delimited(fields.value.tag, utf8(tag))),
          ...field(
            fields.value.simpleValue,
            wire.fourBytes,
            fixed(4, (view) => view.setFloat32(0, value, true)),
          ),
        ]),
      ),
    ),
  );

const encodeSession = (): Uint8Array => joined(field(fields.sessionLog.status, wire.varint, varint(SESSION_START)));

const field = (number: number, kind: number, content: Uint8Array): Uint8Array[] => [varint(number * 8 + kind), content];

const delimited = (number: number, content: Uint8Array): Uint8Array[] => [
  ...field(number, wire.lengthDelimited, varint(content.byteLength)),
  content,
];

/** Encodes seven bits per byte, the lowest first; the upper bit marks that more follow. */
function varint(value: number): Uint8Array {
  const bytes: number[] = [];
  let left = value;
  for (; left >= 128; left = Math.floor(left / 128)) bytes.push((left % 128) + 128);
  return Uint8Array.from([...bytes, left]);
}

function fixed(size: number, write: (view: DataView) => void): Uint8Array {
  const bytes = new Uint8Array(size);
  write(new DataView(bytes.buffer));
  return bytes;
}

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);

/** Encodes a record: the length, its checksum, the bytes, and their checksum. */
export function encodeRecord(bytes: Uint8Array): Uint8Array {
  const length = fixed(8, (view) => view.setBigUint64(0, BigInt(bytes.byteLength), true));
  return joined([length, checksum(length), bytes, checksum(bytes)]);
}

const checksum = (bytes: Uint8Array): Uint8Array => fixed(4, (view) => view.setUint32(0, maskedCrc32c(bytes), true));

const joined = (parts: readonly Uint8Array[]): Uint8Array => new Uint8Array(Buffer.concat(parts));
