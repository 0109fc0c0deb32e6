import { expect, test } from "bun:test";
import { ArgumentError } from "../../src/core/errors.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { rand } from "../../src/ops/random/rand.ts";
import { randn } from "../../src/ops/random/randn.ts";
import { defaultGenerator, Generator, manualSeed } from "../../src/random/generator.ts";
import { withVariables } from "../support/environment.ts";
import { bunWords } from "../support/program.ts";
import { bytesOf, on, tested } from "./backends.ts";

test("manualSeed makes a run repeat exactly, also on another backend", () => {
  const run = () => [rand([3]), randn([5]), rand([3])].map(bytesOf);
  const runs = tested.map((backend) => {
    manualSeed(11);
    return on(backend, run);
  });
  for (const other of runs) expect(other).toEqual(runs[0]);
  expect(new Set(runs[0]).size).toBe(3);
  manualSeed(12);
  expect(run()).not.toEqual(runs[0]);
});

test("a call draws one number from the generator, regardless of its size and dtype", () => {
  const generator = new Generator(1);
  for (const shape of [[0], [1], [1000, 3]]) rand(shape, { generator });
  randn([2], { generator, dtype: "float64" });
  expect(generator.getState()).toEqual({ seed: 1n, offset: 4n });
});

test("a saved state resumes", () => {
  const generator = new Generator(5);
  rand([4], { generator });
  const state = generator.getState();
  const first = bytesOf(rand([4], { generator }));
  expect(bytesOf(rand([4], { generator }))).not.toBe(first);
  expect(bytesOf(rand([4], { generator: generator.setState(state) }))).toBe(first);
  expect(bytesOf(rand([4], { generator: new Generator().setState(state) }))).toBe(first);
});

test("a checkpoint resumes in a new generator on every backend", () => {
  const generator = new Generator(8);
  randn([7], { generator });
  const checkpoint = structuredClone(generator.getState());
  const ahead = () => [rand([9], { generator }), randn([5], { generator })].map(bytesOf);
  const expected = on(tested[0], ahead);
  for (const backend of tested) {
    generator.manualSeed(0).setState(checkpoint);
    expect(on(backend, ahead)).toEqual(expected);
    expect(generator.getState()).toEqual({ seed: 8n, offset: 3n });
  }
});

test("generators are independent of each other, and of the default one", () => {
  manualSeed(3);
  const before = defaultGenerator.getState();
  rand([4], { generator: new Generator(3) });
  expect(defaultGenerator.getState()).toEqual(before);
  expect(bytesOf(rand([8], { generator: new Generator(1) }))).not.toBe(
    bytesOf(rand([8], { generator: new Generator(2) })),
  );
});

test("the default seed is the system's entropy", () => {
  using _ = withVariables({ ORCHARD_SEED: undefined });
  const seeds = Array.from({ length: 4 }, () => new Generator().seed);
  expect(new Set(seeds).size).toBe(4);
  expect(seeds.some((seed) => seed > 2n ** 40n)).toBe(true);
});

test("ORCHARD_SEED seeds the default generator and generators without a seed", () => {
  const program = `
    import { Generator, rand, manualSeed } from "./src/index.ts";
    const first = rand([3]).toArray();
    const own = new Generator();
    const others = [own.seed, new Generator(9).seed, new Generator().seed];
    manualSeed(7n);
    console.log(String(others), Bun.deepEquals(first, rand([3]).toArray()));`;
  const run = (seed: string) =>
    Bun.spawnSync([...bunWords, "-e", program], {
      cwd: packageRoot,
      env: { ...process.env, ORCHARD_SEED: seed, ORCHARD_BACKEND: "reference" },
    });
  expect(run("7").stdout.toString()).toBe("8,9,9 true\n");
  expect(run("07").stdout.toString()).toBe("8,9,9 true\n");
  expect(run("6").stdout.toString()).toBe("7,9,8 false\n");
  for (const seed of ["-1", "1.5", "0x10", "18446744073709551616"]) {
    const { exitCode, stderr } = run(seed);
    expect(exitCode).toBe(1);
    expect(stderr.toString()).toContain("[ORCHARD_SEED] expected a whole number of at least 0 and below 2^64");
    expect(stderr.toString()).toContain(`got "${seed}"`);
  }
});

test("the last state wraps around", () => {
  const generator = new Generator().setState({ seed: 2n ** 64n - 1n, offset: 2n ** 64n - 1n });
  rand([1], { generator });
  expect(generator.getState().offset).toBe(0n);
});

test.each([-1, 0.5, Number.NaN, 2 ** 53, -1n, 2n ** 64n])("the seed %p is rejected", (seed) => {
  expect(() => manualSeed(seed)).toThrow(ArgumentError);
  expect(() => new Generator(seed)).toThrow(/whole number of at least 0/);
});
