/** Programs that no recording makes are rejected: every index in them is checked. */
import { ptr } from "bun:ffi";
import { expect, test } from "bun:test";
import { Status } from "../../src/backend/cpu/abi.ts";
import { cpuLibrary } from "../../src/backend/cpu/loader.ts";
import { whyUnavailable } from "../../src/backend/registry.ts";
import { hash, Random } from "../ops/samples.ts";
import { repeats } from "../support/repeats.ts";

test("random programs return a status, and write nothing", () => {
  expect(whyUnavailable("cpu")).toBeUndefined();
  const { native } = cpuLibrary();
  const random = new Random(hash("programs"));
  const memory = new Uint8Array(new ArrayBuffer(64));
  const addresses = new Float64Array(8).fill(ptr(memory));
  const blocks = new Float64Array(256); // describes operands of 0 bytes
  const stopped = new Float64Array(1);
  const seen = new Set<number>();
  for (let draw = 0; draw < repeats({ usual: 5_000, all: 500_000 }); draw++) {
    const words = Int32Array.from({ length: random.integer(1, 24) }, () => random.integer(-3, 90));
    words[0] = pickCode(random);
    const status = native.orchard_cpu_run_program(
      ...([words, words.length, blocks, blocks.length, addresses, addresses.length, stopped] as const),
    );
    seen.add(status);
  }
  expect([...seen].filter((status) => status !== Status.ok && status !== Status.unsupported)).toEqual([
    Status.invalidArgument,
  ]);
  expect(memory.every((byte) => byte === 0)).toBe(true);
});

/** A call, a fused one, a product or an unknown one. A check trusts its number of bytes, as calls trust sizes. */
const pickCode = (random: Random): number => [0, 0, 2, 2, 3, -1, 4][random.integer(0, 6)];

test("a check stops a program, and complete instructions are counted", () => {
  const { native } = cpuLibrary();
  const memory = Uint8Array.of(1, 2, 3, 4, 1, 2, 3, 5);
  void memory.buffer;
  const base = ptr(memory);
  const addresses = Float64Array.of(base, base + 4);
  const stopped = new Float64Array(1);
  const run = (...words: number[]): number[] => {
    const status = native.orchard_cpu_run_program(
      ...([Int32Array.from(words), words.length, new Float64Array(1), 1, addresses, 2, stopped] as const),
    );
    return [status, stopped[0]];
  };
  expect(run(1, 0, 1, 3)).toEqual([Status.ok, 1]);
  expect(run(1, 0, 1, 3, 1, 0, 1, 4, 1, 0, 0, 4)).toEqual([Status.ok, 1]);
  expect(run(1, 0, 2, 3)).toEqual([Status.invalidArgument, 0]);
  expect(run(1, 0, 1, 3, 1, 0)).toEqual([Status.invalidArgument, 1]);
});
