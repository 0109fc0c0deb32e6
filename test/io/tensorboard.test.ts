/**
 * Event files have, byte for byte, the records that the package `tensorboard` writes. The package also reads the files
 * of a run.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { dataAlone, presentPython } from "../../scripts/fixtures/environment.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { ArgumentError, DisposedError, FileError, io } from "../../src/index.ts";
import { crc32c } from "../../src/io/tensorboard/crc32c.ts";
import { type EventContent, encodeEvent, encodeRecord } from "../../src/io/tensorboard/event.ts";
import { TensorBoardLog } from "../../src/train/listeners/tensorboard.ts";
import { gaps, writeGaps } from "../ops/run.ts";
import { testFolder } from "../support/folder.ts";
import { startEvent, stepEvent } from "../train/events.ts";

interface Fixture extends Omit<EventContent, "scalars"> {
  readonly wallTime: number;
  readonly scalars?: readonly (readonly [string, number | string])[];
  readonly record: string;
}

const fixtures = join(packageRoot, "test", "fixtures", "tensorboard", "events.json");
const events = JSON.parse(readFileSync(fixtures, "utf8")) as Fixture[];
const words: Readonly<Record<string, number>> = { nan: Number.NaN, inf: Infinity, "-inf": -Infinity, "-0": -0 };
const numberOf = (value: number | string): number => (typeof value === "number" ? value : words[value]);
const folder = testFolder("tensorboard");
afterAll(writeGaps);

test.each(events.map((event, at) => ({ at, event })))(
  "event $at has the bytes that the package writes",
  ({ event }) => {
    const { wallTime, scalars, record, ...content } = event;
    const own = scalars && { scalars: scalars.map(([tag, value]) => [tag, numberOf(value)] as const) };
    const bytes = encodeRecord(encodeEvent(wallTime, { ...content, ...own }));
    expect(Buffer.from(bytes).toString("base64")).toBe(record);
  },
);

// RFC 3720, B.4.
test.each([
  ["zeros", new Uint8Array(32), 0x8a9136aa],
  ["ones", new Uint8Array(32).fill(0xff), 0x62a8ab43],
  ["0 to 31", Uint8Array.from({ length: 32 }, (_, at) => at), 0x46dd794e],
  ["31 to 0", Uint8Array.from({ length: 32 }, (_, at) => 31 - at), 0x113fdb5c],
] as const)("the CRC-32C of %s is correct", (_name, bytes, expected) => {
  expect(crc32c(bytes)).toBe(expected);
});

/** The contents of the records in a folder's event files, without their times, in base64. */
function contentsOf(path: string): string[] {
  const names = readdirSync(path).toSorted();
  const found: string[] = [];
  for (const name of names) {
    const bytes = readFileSync(join(path, name));
    for (let at = 0; at < bytes.byteLength; ) {
      const length = Number(bytes.readBigUInt64LE(at));
      const whole = bytes.subarray(at, at + length + 16);
      const event = whole.subarray(12, -4);
      expect(encodeRecord(event)).toEqual(new Uint8Array(whole));
      expect(Math.abs(event.readDoubleLE(1) - Date.now() / 1000)).toBeLessThan(3600);
      found.push(event.subarray(9).toString("base64"));
      at += whole.byteLength;
    }
  }
  return found;
}

const withoutTime = (content: EventContent): string =>
  Buffer.from(encodeEvent(1, content).subarray(9)).toString("base64");

describe("event files of a run", () => {
  const steps = [
    stepEvent(1, { bitsPerByte: 5 }),
    stepEvent(2, { learningRate: 0.5, gradientNorm: 3 }),
    { kind: "evaluation", step: 2, loss: 4.5, bitsPerByte: 2.25 } as const,
  ];
  const path = folder.file("run");

  test("an event file has its scalars; a resumed session starts at its checkpoint", () => {
    for (const [session, list] of [
      [startEvent, steps],
      [{ ...startEvent, step: 1 }, steps.slice(1)],
    ] as const) {
      const log = new TensorBoardLog(path);
      for (const event of [session, ...list]) log.on(event);
      log.close();
    }
    const scalars = (step: number, bits: number, more: readonly (readonly [string, number])[]) =>
      withoutTime({
        step,
        scalars: [["nats_per_token/train", 3 * (1 + 4 / step)], ["bits_per_byte/train", bits], ...more],
      });
    const speed = ["speed/tokens_per_second", 45_678] as const;
    const first = scalars(1, 5, [["optimizer/learning_rate", 1e-3], ["optimizer/gradient_norm", 1], speed]);
    const second = scalars(2, 3, [["optimizer/learning_rate", 0.5], ["optimizer/gradient_norm", 3], speed]);
    const heldOut = [
      ["nats_per_token/held_out", 4.5],
      ["bits_per_byte/held_out", 2.25],
    ] as const;
    const evaluation = withoutTime({ step: 2, scalars: heldOut });
    const version = withoutTime({ fileVersion: "brain.Event:2" });
    const resumed = withoutTime({ step: 2, startsSession: true });
    expect(contentsOf(path)).toEqual([version, first, second, evaluation, version, resumed, second, evaluation]);
  });

  const python = presentPython(dataAlone);
  if (python === undefined) gaps.push("event files read by TensorBoard: it is not here; `bun run fixtures` brings it");

  test.if(python !== undefined)("TensorBoard reads the event files", () => {
    const script = join(packageRoot, "scripts", "fixtures", "event_files.py");
    const { stdout, exitCode } = Bun.spawnSync([python!, script, "read", path], { stderr: "ignore" });
    expect(exitCode).toBe(0);
    const read = JSON.parse(stdout.toString()) as Record<string, [number, number][]>;
    expect(read["nats_per_token/train"]).toEqual([
      [1, 15],
      [2, 9],
    ]);
    expect(read["bits_per_byte/held_out"]).toEqual([[2, 2.25]]);
  });
});

test("writers in the same second have separate files", () => {
  const path = folder.file("two");
  for (const value of [1, 2]) {
    using log = new io.SummaryWriter(path);
    log.addScalar("a", value, 0);
  }
  expect(readdirSync(path)).toHaveLength(2);
});

test("invalid steps, folders that can't be created, and writes after the end are rejected", async () => {
  using log = new io.SummaryWriter(folder.file("closed"));
  for (const step of [-1, 0.5, 2 ** 60]) expect(() => log.addScalar("a", 1, step)).toThrow(ArgumentError);
  log.close();
  expect(() => log.addScalar("a", 1, 1)).toThrow(DisposedError);
  await Bun.write(folder.file("file"), "");
  expect(() => new io.SummaryWriter(join(folder.file("file"), "inner"))).toThrow(FileError);
});
