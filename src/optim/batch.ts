/**
 * Parameters that one launch updates. The state of all of them is one tensor [planes, elements]: one plane for each
 * state name, with a range for each parameter. A launch binds this tensor once, which leaves bindings for more
 * parameters.
 */
import { empty } from "../backend/dispatch.ts";
import { copyInto } from "../ops/copy/copy.ts";
import { rowMajorStrides } from "../tensor/shape.ts";
import { Tensor } from "../tensor/tensor.ts";
import { keep } from "../tensor/tidy.ts";

/** Ranges start at multiples of this many elements, to align them to cache lines. */
const ALIGNMENT = 32;

/** A parameter and its state tensors by name. */
export interface Member {
  readonly parameter: Tensor;
  state: Record<string, Tensor>;
}

/** The state of several parameters, laid out together. */
export interface Batch {
  readonly members: readonly Member[];
  /** [planes, elements]; null for a rule without state. */
  readonly state: Tensor | null;
  /** The number of elements of a plane. */
  readonly plane: number;
  /** The offset of each member's range in a plane. */
  readonly starts: readonly number[];
}

/** Copies the states of parameters into one tensor. Their own state tensors become views of it. */
export function makeBatch(members: readonly Member[]): Batch {
  const starts: number[] = [];
  let plane = 0;
  for (const { parameter } of members) {
    starts.push(plane);
    plane += Math.ceil(parameter.size / ALIGNMENT) * ALIGNMENT;
  }
  const first = Object.values(members[0]!.state);
  if (first.length === 0) return { members, state: null, plane, starts };
  const state = keep(empty([first.length, plane], first[0]!.dtype, { label: "optimizer state" }, "step"));
  for (const [index, member] of members.entries()) moveInto(state, plane, starts[index]!, member);
  return { members, state, plane, starts };
}

function moveInto({ storage, dtype }: Tensor, plane: number, start: number, member: Member): void {
  const { shape } = member.parameter;
  const views = Object.entries(member.state).map(([name, own], row) => {
    const view = keep(new Tensor(storage, dtype, shape, rowMajorStrides(shape), row * plane + start));
    copyInto(view, own);
    own.dispose();
    return [name, view] as const;
  });
  member.state = Object.fromEntries(views);
}

/** Whether a batch consists of these parameters, and their state tensors are still views of it. */
export const isBatchOf = ({ members, state }: Batch, candidates: readonly Member[]): boolean =>
  members.length === candidates.length &&
  candidates.every((member, index) => {
    const own = Object.values(member.state);
    return (
      member === members[index] &&
      own.every(({ storage }) => storage === state?.storage) &&
      own.length === state?.shape[0]
    );
  });
