/**
 * Finds chains: successive elementwise dispatches over the same number of elements, which one kernel can compute. A
 * chain may begin with a matrix product, whose kernel then computes the chain for each element that it writes.
 */

import type { Entry } from "../recording.ts";
import { type TiledCall, tiledCall } from "./bodies.ts";
import { isSameRange, type Planned, rangesOf } from "./dispatches.ts";
import { type Instruction, instructionOf, type Place } from "./instructions.ts";
import { productOf } from "./products.ts";

/** Metal allows 31 buffers. This leaves room for the parameters and for older devices with lower limits. */
const MAX_BUFFERS = 24;
const MAX_NESTS = 16;
const MAX_INSTRUCTIONS = 32;

/** A product at the start of a chain. */
export interface Head {
  readonly call: Planned;
  readonly tiled: TiledCall;
  /** The result of the product, which the chain reads from registers. */
  readonly output: Place;
  /** Whether the result is also written to memory. */
  readonly isStored: boolean;
}

export interface Chain {
  /** The index of the first dispatch, and the number of dispatches. */
  readonly first: number;
  readonly length: number;
  readonly head: Head | undefined;
  readonly instructions: readonly Instruction[];
  /** The operands that are loaded from memory, in order of first use. */
  readonly loads: readonly Place[];
  /** The indices of the instructions whose results are stored. */
  readonly stores: readonly number[];
  /** Whether operations may be contracted, so that a product and a sum round once. */
  readonly isFast: boolean;
}

/** Whether an entry outlives the function, or a dispatch outside of `first` to `end - 1` accesses it. */
export type Needed = (entry: Entry, first: number, end: number) => boolean;

/** Returns the chains of at least two dispatches. @param isNeeded see {@link Needed} */
export function chainsOf(calls: readonly Planned[], isNeeded: Needed): Omit<Chain, "isFast">[] {
  const chains: OpenChain[] = [];
  let open: OpenChain | undefined;
  for (const [at, call] of calls.entries()) {
    const instruction = instructionOf(call);
    const head = instruction ? undefined : headOf(call);
    if (head || (instruction && !open?.accepts(instruction))) {
      open = new OpenChain(at, head);
      chains.push(open);
    } else if (!instruction) open = undefined;
    if (instruction) open!.add(instruction);
  }
  return chains.filter(({ length }) => length > 1).map((chain) => chain.closed(isNeeded));
}

/** Returns a product whose elements a chain may read: the results are dense and not split. */
function headOf(call: Planned): Omit<Head, "isStored"> | undefined {
  const tiled = tiledCall(call);
  if (!tiled) return undefined;
  const { elements, splits } = productOf(call);
  const range = rangesOf(call)[3];
  if (splits !== 1 || range.length !== elements * (tiled.out === "float" ? 4 : 2)) return undefined;
  return { call, tiled, output: { ...range, type: tiled.out, nest: null } };
}

/** Whether two operands are the same elements of the same memory. */
export const isSamePlace = (a: Place, b: Place): boolean => isSameRange(a, b) && a.type === b.type && isSameNest(a, b);

const isSameNest = ({ nest: a }: Place, { nest: b }: Place): boolean =>
  a === b ||
  (a !== null &&
    b !== null &&
    a.start === b.start &&
    String(a.shape) === String(b.shape) &&
    String(a.strides) === String(b.strides));

class OpenChain {
  private readonly instructions: Instruction[] = [];
  private readonly loads: Place[] = [];

  constructor(
    private readonly first: number,
    private readonly head: Omit<Head, "isStored"> | undefined,
  ) {}

  get length(): number {
    return this.instructions.length + (this.head ? 1 : 0);
  }

  /**
   * Whether an instruction can join the chain. It may read the chain's results only element by element, and may write
   * only memory that the chain neither reads nor writes. The first one after a product reads the product.
   */
  accepts({ inputs, output, count }: Instruction): boolean {
    const { instructions, loads, head } = this;
    if (this.count !== count || instructions.length === MAX_INSTRUCTIONS) return false;
    const results = this.results;
    if (results.some((earlier) => earlier.entry === output.entry)) return false;
    if ([...loads, ...inputs].some(({ entry }) => entry === output.entry)) return false;
    if (head?.call.operands.includes(output.entry)) return false;
    if (head && instructions.length === 0 && !inputs.some(({ entry }) => entry === head.output.entry)) return false;
    const all = [...loads, ...inputs];
    if (all.length + instructions.length + 1 + (head ? 5 : 0) > MAX_BUFFERS) return false;
    if (all.filter(({ nest }) => nest !== null).length > MAX_NESTS) return false;
    return inputs.every((input) => {
      const written = results.find((earlier) => earlier.entry === input.entry);
      return written === undefined || isSamePlace(written, input);
    });
  }

  private get count(): number {
    return this.head ? productOf(this.head.call).elements : this.instructions[0].count;
  }

  private get results(): Place[] {
    const outputs = this.instructions.map(({ output }) => output);
    return this.head ? [this.head.output, ...outputs] : outputs;
  }

  add(instruction: Instruction): void {
    const { instructions, loads, results } = this;
    for (const input of instruction.inputs) {
      const isKnown = results.some(({ entry }) => entry === input.entry);
      if (!isKnown && !loads.some((load) => isSamePlace(load, input))) loads.push(input);
    }
    instructions.push(instruction);
  }

  closed(isNeeded: Needed): Omit<Chain, "isFast"> {
    const { first, instructions, loads, head, length } = this;
    const isStored = ({ entry }: Place) => isNeeded(entry, first, first + length);
    return {
      first,
      length,
      instructions,
      loads,
      head: head && { ...head, isStored: isStored(head.output) },
      stores: [...instructions.keys()].filter((at) => isStored(instructions[at].output)),
    };
  }
}
