/** The model of bytes and latency, compared with messages that are counted one by one. */
import { expect, test } from "bun:test";
import { efficiency, fitted, halving, ring } from "../../bench/support/distributed_model.ts";

/** Runs an allReduce around a ring on numbers. Returns its steps, and the parts that a rank sends in each. */
function simulateRing(ranks: number): { readonly steps: number; readonly sums: number[][] } {
  const held = Array.from({ length: ranks }, (_, rank) => Array.from({ length: ranks }, (_, part) => rank + 10 * part));
  let steps = 0;
  const pass = (offset: number, combine: (own: number, got: number) => number) => {
    const sent = held.map((parts, rank) => parts[(rank - offset + 2 * ranks) % ranks]);
    for (let rank = 0; rank < ranks; rank++) {
      const part = (rank - 1 - offset + 2 * ranks) % ranks;
      held[rank][part] = combine(held[rank][part], sent[(rank - 1 + ranks) % ranks]);
    }
    steps++;
  };
  for (let step = 0; step < ranks - 1; step++) pass(step, (own, got) => own + got);
  for (let step = 0; step < ranks - 1; step++) pass(step - 1, (_, got) => got);
  return { steps, sums: held };
}

const network = { name: "a network", latency: 3e-6, bandwidth: 2e9 };

test.each([2, 3, 8])("a ring of %d ranks sums in as many steps and messages as the formula states", (ranks) => {
  const { steps, sums } = simulateRing(ranks);
  const total = (ranks * (ranks - 1)) / 2;
  for (const parts of sums) expect(parts).toEqual(parts.map((_, part) => total + ranks * 10 * part));
  const bytes = 1e6 * ranks;
  expect(ring(ranks, bytes, network)).toBeCloseTo(steps * (3e-6 + 1e6 / 2e9), 12); // each part has 1 MB
});

test("the time of halving and doubling follows from its bytes and messages", () => {
  let [sent, messages] = [0, 0];
  for (let part = 512; part >= 1; part /= 2) {
    sent += 2 * part; // each part is sent once while halving and once while doubling
    messages += 2;
  }
  expect(halving(1024, 1024e6, network)).toBeCloseTo((sent * 1e6) / 2e9 + messages * 3e-6, 9);
});

test("efficiency counts the time that backward does not hide", () => {
  const work = { bytes: 2e9, seconds: 4, overlap: 0.5 };
  const free = { name: "free", latency: 0, bandwidth: 1e9 }; // with two ranks the exchange takes 2 s, all of it hidden
  expect(efficiency(2, work, free)).toBe(1);
  expect(efficiency(2, work, { ...free, bandwidth: 0.5e9 })).toBeCloseTo(4 / 6, 12); // 4 s, of which 2 s are hidden
});

test("fitted latency and bandwidth are those of the line through two times", () => {
  const time = (bytes: number) => ring(2, bytes, network);
  const line = fitted("a line", [1e3, time(1e3)], [1e8, time(1e8)]);
  expect(line.latency).toBeCloseTo(3e-6, 12);
  expect(line.bandwidth / 2e9).toBeCloseTo(1, 9);
});
