/** Finds chains: successive elementwise dispatches over the same number of elements, which one kernel can compute. */
import type { Entry } from "../recording.ts";
import { type Instruction, instructionOf, type Place } from "./instructions.ts";
import type { DeviceCall } from "./recording.ts";

/** Metal allows 31 buffers. This leaves room for the parameters and for older devices with lower limits. */
const MAX_BUFFERS = 24;
const MAX_NESTS = 16;
const MAX_INSTRUCTIONS = 32;

export interface Chain {
  /** The index of the first dispatch. */
  readonly first: number;
  readonly instructions: readonly Instruction[];
  /** The operands that are loaded from memory, in order of first use. */
  readonly loads: readonly Place[];
  /** The indices of the instructions whose results are stored. */
  readonly stores: readonly number[];
}

/** Returns the chains of at least two dispatches. @param isLasting whether an entry outlives the function */
export function chainsOf(calls: readonly DeviceCall[], isLasting: (entry: Entry) => boolean): Chain[] {
  const chains: OpenChain[] = [];
  let open: OpenChain | undefined;
  for (const [at, call] of calls.entries()) {
    const instruction = instructionOf(call);
    if (!instruction) open = undefined;
    else if (!open?.accepts(instruction)) {
      open = new OpenChain(at);
      chains.push(open);
    }
    if (instruction) open!.add(instruction);
  }
  return chains.filter(({ instructions }) => instructions.length > 1).map((chain) => chain.closed(isLasting));
}

/** Whether two operands are the same elements of the same memory. */
export const isSamePlace = (a: Place, b: Place): boolean =>
  a.entry === b.entry && a.type === b.type && a.offset === b.offset && a.length === b.length && isSameNest(a, b);

const isSameNest = ({ nest: a }: Place, { nest: b }: Place): boolean =>
  a === b ||
  (a !== null &&
    b !== null &&
    a.start === b.start &&
    String(a.shape) === String(b.shape) &&
    String(a.strides) === String(b.strides));

class OpenChain {
  readonly instructions: Instruction[] = [];
  private readonly loads: Place[] = [];

  constructor(private readonly first: number) {}

  /**
   * Whether an instruction can join the chain. It may read the chain's results only element by element, and may write
   * only memory that the chain neither reads nor writes.
   */
  accepts({ inputs, output, count }: Instruction): boolean {
    const { instructions, loads } = this;
    if (instructions[0]!.count !== count || instructions.length === MAX_INSTRUCTIONS) return false;
    if (instructions.some((earlier) => earlier.output.entry === output.entry)) return false;
    if ([...loads, ...inputs].some(({ entry }) => entry === output.entry)) return false;
    const all = [...loads, ...inputs];
    if (all.length + instructions.length + 1 > MAX_BUFFERS) return false;
    if (all.filter(({ nest }) => nest !== null).length > MAX_NESTS) return false;
    return inputs.every((input) => {
      const written = instructions.find((earlier) => earlier.output.entry === input.entry);
      return written === undefined || isSamePlace(written.output, input);
    });
  }

  add(instruction: Instruction): void {
    const { instructions, loads } = this;
    for (const input of instruction.inputs) {
      const isKnown = instructions.some(({ output }) => output.entry === input.entry);
      if (!isKnown && !loads.some((load) => isSamePlace(load, input))) loads.push(input);
    }
    instructions.push(instruction);
  }

  closed(isLasting: (entry: Entry) => boolean): Chain {
    const { first, instructions, loads } = this;
    const end = first + instructions.length;
    const isStored = ({ output: { entry } }: Instruction) =>
      isLasting(entry) || entry.last >= end || entry.first < first;
    return { first, instructions, loads, stores: [...instructions.keys()].filter((at) => isStored(instructions[at]!)) };
  }
}
