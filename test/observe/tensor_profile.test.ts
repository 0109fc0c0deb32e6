/** `ORCHARD_TENSOR_PROFILE`: a line for each allocation. */
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { child, hasMetal, newFolder, record, recordsIn } from "../support/recorded.ts";

const on = { ORCHARD_TENSOR_PROFILE: "1" };
const LOG = "orchard_tensor_profile.log";

interface Line {
  readonly pid: number;
  readonly bytes: number;
  readonly storage: string;
  readonly live: number;
  readonly peak: number;
  readonly label: string;
}

/** NaN for unknown figures. Every line must be complete. */
function parse(text: string): Line[] {
  expect(text).toEndWith("\n");
  return text
    .split("\n")
    .slice(0, -1)
    .map((line) => {
      const found = /^pid=(\d+) ms=\d+\.\d{3} bytes=(\d+) storage=(\w+) live=(\d+|-) peak=(\d+|-) label=(.+)$/.exec(
        line,
      );
      expect([line, found !== null]).toEqual([line, true]);
      const [pid, bytes, storage, live, peak, label] = found!.slice(1) as [
        string,
        string,
        string,
        string,
        string,
        string,
      ];
      return { pid: Number(pid), bytes: Number(bytes), storage, live: Number(live), peak: Number(peak), label };
    });
}

test("large blocks of the cpu backend are logged: bytes, live bytes and their peak, and the operation", () => {
  const { file, lines } = record(
    `const x = zeros([512, 512]);
    const y = orchard.exp(x);
    y.dispose();
    orchard.neg(x);`,
    on,
  );
  expect(lines).toEqual([]);
  const [first, ...others] = parse(file(LOG)).filter(({ storage }) => storage === "host");
  const bytes = 2 ** 20;
  expect(first).toMatchObject({ bytes, label: "fill" });
  const one = first.live; // a block may be somewhat larger than its tensor
  expect(one).toBeGreaterThanOrEqual(bytes);
  expect(others).toEqual([
    expect.objectContaining({ bytes, live: 2 * one, peak: 2 * one, label: "exp" }),
    expect.objectContaining({ bytes, live: 2 * one, peak: 2 * one, label: "neg" }),
  ]);
});

test("the peak stays when memory is released", () => {
  const { file } = record(
    `zeros([1024, 1024]).dispose();
    zeros([512, 512]);`,
    on,
  );
  const [large, small] = parse(file(LOG)).filter(({ storage }) => storage === "host");
  expect(small.live).toBeLessThan(large.live);
  expect([large.peak, small.peak]).toEqual([large.live, large.live]);
});

test("JavaScript's memory is logged with unknown live bytes; borrowed arrays are not counted", () => {
  const { file } = record(`withBackend("reference", () => orchard.exp(orchard.fromArray(new Float32Array(25))));`, on);
  expect(parse(file(LOG))).toEqual([
    expect.objectContaining({ bytes: 100, storage: "script", live: Number.NaN, peak: Number.NaN, label: "exp" }),
  ]);
});

test.if(hasMetal)("Metal's buffers are logged with the storage mode, and the label if there is one", () => {
  const { file } = record(
    `using weights = new orchard.DeviceBuffer(65536, { storage: "private", label: "the weights" });
    withBackend("metal", () => orchard.exp(zeros([128, 128])));`,
    on,
  );
  const metal = parse(file(LOG));
  expect(metal.map(({ bytes, storage, label }) => [bytes, storage, label])).toEqual([
    [65536, "private", "the weights"],
    [65536, "shared", "fill"],
    [65536, "shared", "exp"],
  ]);
  const live = metal.map((line) => line.live);
  expect(live[0]).toBeGreaterThanOrEqual(65536);
  expect(live).toEqual([...live].sort((a, b) => a - b));
  expect(metal.map(({ peak }) => peak)).toEqual(live);
});

test("several processes add to one file, and no line is torn", async () => {
  const folder = newFolder();
  const { command, options } = child("for (let call = 0; call < 300; call++) orchard.exp(tensor([1, 2]));", folder, on);
  const children = [0, 1, 2].map(() => Bun.spawn(command, options));
  await Promise.all(children.map(({ exited }) => exited));
  const lines = parse(await Bun.file(join(folder, LOG)).text()).filter(({ label }) => label === "exp");
  for (const { pid } of children) expect(lines.filter((line) => line.pid === pid)).toHaveLength(300);
});

test("a file that can't be written causes one warning, and work continues", () => {
  const { lines, printed } = record("console.log(orchard.neg(orchard.neg(tensor([1, 2]))).toArray());", {
    ...on,
    TMPDIR: "/nowhere",
  });
  expect(printed).toBe("[ 1, 2 ]");
  expect(lines).toEqual([
    expect.stringMatching(
      /^\[orchard\] \/nowhere\/orchard_tensor_profile\.log can't be written, so nothing more is recorded there: ENOENT/,
    ),
  ]);
});

test("there is no file if it is off", () => {
  const { folder, exitCode } = record("zeros([512, 512]);", { ORCHARD_TENSOR_PROFILE: "" });
  expect([exitCode, existsSync(folder), recordsIn(folder)]).toEqual([0, true, []]);
});
