import { environment } from "../core/environment.ts";
import { ArgumentError } from "../core/errors.ts";
import { operand, optionalOperand, parameters, required } from "../core/parameters.ts";
import { capture } from "../observe/capture.ts";
import { seed } from "./kinds.ts";
import { callKey, type PhiloxKey } from "./philox.ts";

/** The state of a generator, which determines its next numbers. */
export interface GeneratorState {
  /** The 64-bit seed. */
  readonly seed: bigint;
  /** The number of calls served so far. */
  readonly offset: bigint;
}

let unchosenSeeds = 0n;

/**
 * The seed of a generator that was given none: that of `ORCHARD_SEED` for the first (the default generator), the
 * following numbers for later ones, or the system's entropy.
 */
function unchosenSeed(): bigint {
  const text = environment("ORCHARD_SEED");
  if (text === undefined) return crypto.getRandomValues(new BigUint64Array(1))[0];
  const first = /^\d+$/.test(text) ? seed.parse(BigInt(text), "ORCHARD_SEED", "seed") : undefined;
  if (first !== undefined) return BigInt.asUintN(64, first + unchosenSeeds++);
  throw new ArgumentError("ORCHARD_SEED", "invalidSeed", `expected ${seed.expected}, got "${text}"`);
}

/** @internal Starts again as a new process does: the default generator and the seeds of generators without one. */
export function restartSeeds(): void {
  unchosenSeeds = 0n;
  defaultGenerator.setState({ seed: unchosenSeed(), offset: 0n });
}

const generatorParameters = parameters("Generator", { seed: optionalOperand(seed) });
const seedParameters = parameters("manualSeed", { seed: operand(seed) });
const stateParameters = parameters("setState", { seed: required(seed), offset: required(seed) });

/**
 * A source of random numbers: a seed and the number of calls served. Each call of a random operation takes one number,
 * before a backend is chosen. So a run with the same seed repeats exactly on every backend, with or without fallbacks.
 *
 * @example
 * const generator = new Generator(42);
 * const a = randn([2, 3], { generator });
 * const state = generator.getState();
 * const b = randn([2, 3], { generator });
 * generator.setState(state);
 * const again = randn([2, 3], { generator }); // equals b
 */
export class Generator {
  private seed_: bigint;
  private offset = 0n;

  /**
   * @param seed a whole number of at least 0 and below 2⁶⁴; by default from `ORCHARD_SEED` or the
   * system's entropy. @throws {ArgumentError}
   */
  constructor(seed?: number | bigint);
  constructor(...values: unknown[]) {
    this.seed_ = generatorParameters(values).seed ?? unchosenSeed();
  }

  /** The seed, given or taken from entropy. */
  get seed(): bigint {
    return this.seed_;
  }

  /** Restarts from a seed: a whole number of at least 0 and below 2⁶⁴. @throws {ArgumentError} */
  manualSeed(seed: number | bigint): this;
  manualSeed(...values: unknown[]): this {
    return this.setState({ seed: seedParameters(values).seed, offset: 0n });
  }

  getState(): GeneratorState {
    return { seed: this.seed_, offset: this.offset };
  }

  /** Continues from a state of {@link getState}. @throws {ArgumentError} */
  setState(state: GeneratorState): this;
  setState(...values: unknown[]): this {
    const { seed, offset } = stateParameters(values);
    capture?.seeded(this, { seed, offset });
    [this.seed_, this.offset] = [seed, offset];
    return this;
  }

  /** Returns the seed and the number of calls as text. */
  toString(): string {
    return `Generator: seed ${this.seed_}, ${this.offset} ${this.offset === 1n ? "call" : "calls"} so far`;
  }

  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return this.toString();
  }

  /** @internal The key of the next call. */
  nextKey(): PhiloxKey {
    const key = callKey(this.seed_, this.offset);
    this.offset = BigInt.asUintN(64, this.offset + 1n);
    capture?.drew(this, key);
    return key;
  }
}

/** The generator of calls that do not pass one. */
export const defaultGenerator = new Generator();

/**
 * Seeds the default generator, and returns it. The numbers that follow are the same in every run and on every backend.
 *
 * @param seed a whole number of at least 0 and below 2⁶⁴
 *
 * @example
 * manualSeed(0);
 * const weights = randn([784, 10]);
 */
export function manualSeed(seed: number | bigint): Generator;
export function manualSeed(...values: unknown[]): Generator {
  return defaultGenerator.setState({ seed: seedParameters(values).seed, offset: 0n });
}
