/** Draws of sizes, shapes and layouts, all from one seed. */
import type { DType } from "../../../src/tensor/dtype.ts";
import { baseShape, type Layout, type Operand, sizeOf, type Values } from "./case.ts";

/** Maximum elements of an operand in memory: 32 MB of float32. */
export const MOST_ELEMENTS = 2 ** 23;

/** Probability that an operand that supports any layout is strided. */
const layoutShares = { contiguous: 0.7, transposed: 0.12, sliced: 0.1, expanded: 0.08 } as const;

/** The float dtypes with their probabilities. Most programs compute in float32. */
const floatShares = { float32: 0.66, bfloat16: 0.14, float16: 0.1, float64: 0.1 } as const;

/** Bounds of small calls, whose time is mostly the call's overhead: of a drawn size, and of a shape's elements. */
const SMALL = { size: 8, elements: 64 } as const;

export class Draw {
  #state: number;

  /**
   * @param stream the index of one of several independent sequences
   * @param isSmall draws only operands of a few elements
   */
  constructor(
    seed: number,
    stream: number,
    private readonly isSmall = false,
  ) {
    this.#state = Number(Bun.hash(`${seed} ${stream}`) & 0xffffffffn);
  }

  /** A number from 0 up to 1, by mulberry32 (Tommy Ettinger, public domain). */
  uniform(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  chance(share: number): boolean {
    return this.uniform() < share;
  }

  /** A whole number, both bounds included. */
  integer(low: number, high: number): number {
    return low + Math.floor(this.uniform() * (high - low + 1));
  }

  /** A whole number whose logarithm is uniform, so that 10 to 100 is drawn as often as 100 to 1,000. */
  size(low: number, high: number): number {
    if (this.isSmall && high > SMALL.size) return this.integer(low, Math.max(low, SMALL.size));
    return Math.min(high, Math.round(low * (high / low) ** this.uniform()));
  }

  pick<T>(choices: readonly T[]): T {
    return choices[this.integer(0, choices.length - 1)]!;
  }

  /** Draws one of the keys with the given probabilities, which add up to 1. */
  share<Key extends string>(shares: Readonly<Record<Key, number>>): Key {
    const entries = Object.entries(shares) as [Key, number][];
    let rest = this.uniform() * entries.reduce((total, [, share]) => total + share, 0);
    for (const [key, share] of entries) {
      rest -= share;
      if (rest < 0) return key;
    }
    return entries.at(-1)![0];
  }

  /** Draws a shape of about the given number of elements, whose logarithm is divided among the axes at random. */
  shape(rank: number, elements: number): number[] {
    const parts = Array.from({ length: rank }, () => -Math.log(1 - this.uniform()));
    const total = parts.reduce((sum, part) => sum + part, 0);
    const count = this.isSmall ? this.integer(1, SMALL.elements) : elements;
    return parts.map((part) => Math.max(1, Math.round(count ** (part / total))));
  }

  /** A shape of 1 to 4 axes with a log-uniform number of elements: from 64 up to {@link MOST_ELEMENTS}. */
  anyShape(most = MOST_ELEMENTS, least = 64, leastRank = 1): number[] {
    const rank = Math.max(leastRank, this.pick([1, 2, 2, 2, 3, 3, 4]));
    return this.shape(rank, this.size(least, most / 2));
  }

  float(): DType {
    return this.share(floatShares);
  }

  layout(shape: readonly number[]): Layout {
    const axes = shape.flatMap((size, dim) => (size > 1 ? [dim] : []));
    const kind = this.share(layoutShares);
    if (axes.length < 2 || kind === "contiguous") return contiguous;
    const dim = this.pick(axes);
    if (kind === "transposed") return { kind, dims: [dim, this.pick(axes.filter((axis) => axis !== dim))] };
    return { kind, dim };
  }
}

const contiguous: Layout = { kind: "contiguous" };

export interface Given {
  readonly dtype?: DType;
  readonly values?: Values;
  /** Whether the operand may be a view with another, drawn layout. Default: false. */
  readonly anyLayout?: boolean;
}

export function operand(draw: Draw, shape: readonly number[], given: Given = {}): Operand {
  const { dtype = "float32", values = "normal", anyLayout = false } = given;
  const made = { shape, dtype, values, layout: anyLayout ? draw.layout(shape) : contiguous };
  return sizeOf(baseShape(made)) > 2 * MOST_ELEMENTS ? { ...made, layout: contiguous } : made;
}

/** Indices below a bound. */
export const indices = (draw: Draw, shape: readonly number[], below: number, dtype: DType = "int64"): Operand =>
  operand(draw, shape, { dtype, values: { low: 0, high: Math.max(0, below - 1) } });
