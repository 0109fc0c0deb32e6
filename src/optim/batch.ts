/**
 * Parameters that one call updates together. Their state is one tensor [planes, elements], with a plane for each state
 * name, and a range in it for each parameter. A Metal launch binds this tensor once, which leaves bindings for more
 * parameters.
 */
import { empty } from "../backend/allocation.ts";
import { copyInto } from "../ops/copy/copy.ts";
import { rowMajorStrides } from "../tensor/shape.ts";
import { Tensor } from "../tensor/tensor.ts";
import { keep } from "../tensor/tidy.ts";

/** Ranges start at multiples of this many elements, so that they are aligned to cache lines. */
const ALIGNMENT = 32;

/** A parameter and its state tensors by name. */
export interface Member {
  readonly parameter: Tensor;
  state: Record<string, Tensor>;
}

/** The state of several parameters in one tensor. */
export interface Batch {
  /** [planes, elements]; null for a rule without state. */
  readonly state: Tensor | null;
  /** The number of elements of a plane. */
  readonly plane: number;
  /** The members, with the offset of each one's range in a plane. */
  readonly starts: ReadonlyMap<Member, number>;
}

/** Copies the state of all members into one tensor, of which their state tensors become views. */
export function makeBatch(members: readonly Member[]): Batch {
  const starts = new Map<Member, number>();
  let plane = 0;
  for (const member of members) {
    starts.set(member, plane);
    plane += Math.ceil(member.parameter.size / ALIGNMENT) * ALIGNMENT;
  }
  const first = Object.values(members[0].state);
  if (first.length === 0) return { state: null, plane, starts };
  const state = keep(empty([first.length, plane], first[0].dtype, { label: "optimizer state" }, "step"));
  for (const [member, start] of starts) moveInto(state, plane, start, member);
  return { state, plane, starts };
}

function moveInto({ storage, dtype }: Tensor, plane: number, start: number, member: Member): void {
  const { shape } = member.parameter;
  const views = Object.entries(member.state).map(([name, tensor], row) => {
    const view = keep(new Tensor(storage, dtype, shape, rowMajorStrides(shape), row * plane + start));
    copyInto(view, tensor);
    tensor.dispose();
    return [name, view] as const;
  });
  member.state = Object.fromEntries(views);
}

/** Whether a batch contains these members, and their state tensors are still views of its state. */
export const isBatchOf = ({ starts, state }: Batch, candidates: readonly Member[]): boolean =>
  candidates.every((member) => {
    const tensors = Object.values(member.state);
    return (
      starts.has(member) &&
      tensors.every(({ storage }) => storage === state?.storage) &&
      tensors.length === (state?.shape[0] ?? 0)
    );
  });
