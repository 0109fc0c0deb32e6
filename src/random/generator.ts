import { ArgumentError } from "../core/errors.ts";
import { callKey, type PhiloxKey } from "./philox.ts";

/** All that a generator's next numbers depend on. */
export interface GeneratorState {
  /** 64 bits. */
  readonly seed: bigint;
  /** How many calls it has served. */
  readonly offset: bigint;
}

/**
 * A source of random numbers: a seed, and the number of calls that it has served. Each call of a random operation takes
 * one number, before a backend is chosen, so that a run with the same seed repeats exactly on every backend, with or
 * without fallbacks.
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
   * @param seed a whole number of at least 0 and below 2⁶⁴; by default the system's entropy. @throws {ArgumentError}
   */
  constructor(seed: number | bigint = entropy()) {
    this.seed_ = checkWord("Generator", "seed", seed);
  }

  /** The seed that it was given, or found. */
  get seed(): bigint {
    return this.seed_;
  }

  /** Starts anew from a seed: a whole number of at least 0 and below 2⁶⁴. @throws {ArgumentError} */
  manualSeed(seed: number | bigint): this {
    return this.setState({ seed: checkWord("manualSeed", "seed", seed), offset: 0n });
  }

  getState(): GeneratorState {
    return { seed: this.seed_, offset: this.offset };
  }

  /** Goes on from a state of {@link getState}. @throws {ArgumentError} */
  setState({ seed, offset }: GeneratorState): this {
    const checked = [checkWord("setState", "seed", seed), checkWord("setState", "offset", offset)] as const;
    [this.seed_, this.offset] = checked;
    return this;
  }

  /** @internal The key of the next call. */
  nextKey(): PhiloxKey {
    const key = callKey(this.seed_, this.offset);
    this.offset = BigInt.asUintN(64, this.offset + 1n);
    return key;
  }
}

const entropy = (): bigint => crypto.getRandomValues(new BigUint64Array(1))[0]!;

function checkWord(operation: string, name: string, value: unknown): bigint {
  const isWhole = typeof value === "bigint" || Number.isSafeInteger(value);
  const word = isWhole ? BigInt(value as number | bigint) : -1n;
  if (word >= 0n && word < 2n ** 64n) return word;
  throw new ArgumentError(
    operation,
    "invalidSeed",
    `expected ${name} to be a whole number of at least 0 and below 2^64 (a bigint from 2^53 on), got ${String(value)}`,
  );
}

/** The generator of calls that name none. */
export const defaultGenerator = new Generator();

/**
 * Seeds the default generator: what follows is the same numbers in every run and on every backend. Returns the
 * generator.
 *
 * @param seed a whole number of at least 0 and below 2⁶⁴
 *
 * @example
 * manualSeed(0);
 * const weights = randn([784, 10]);
 */
export const manualSeed = (seed: number | bigint): Generator => defaultGenerator.manualSeed(seed);
