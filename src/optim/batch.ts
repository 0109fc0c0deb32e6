/**
 * Parameters that are updated by one launch. What is remembered of all of them lies in one tensor [planes, elements], a plane for each name, in
 * which each parameter has a range; so a launch binds it once, and has room for more parameters.
 */
import { empty } from "../backend/dispatch.ts";
import { copyInto } from "../ops/copy/copy.ts";
import { rowMajorStrides } from "../tensor/shape.ts";
import { Tensor } from "../tensor/tensor.ts";
import { keep } from "../tensor/tidy.ts";

/** As many as Metal has room for: it binds 31 buffers, and a parameter takes three (before, gradient, after) beside the state and the numbers. */
export const MOST_PARAMETERS = 9;
/** Ranges begin at multiples of so many elements: at lines of a cache. */
const ALIGNMENT = 32;

/** A parameter, and what is remembered of it by name. */
export interface Remembered {
  readonly parameter: Tensor;
  state: Record<string, Tensor>;
}

/** The state of several parameters, laid out together. */
export interface Batch {
  readonly members: readonly Remembered[];
  /** [planes, elements]; null where nothing is remembered. */
  readonly state: Tensor | null;
  /** Elements of a plane. */
  readonly plane: number;
  /** Where each member's range begins. */
  readonly starts: readonly number[];
}

/** Brings the states of parameters into one tensor; their own become views of it. */
export function makeBatch(members: readonly Remembered[]): Batch {
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

function moveInto({ storage, dtype }: Tensor, plane: number, start: number, member: Remembered): void {
  const { shape } = member.parameter;
  const views = Object.entries(member.state).map(([name, own], row) => {
    const view = keep(new Tensor(storage, dtype, shape, rowMajorStrides(shape), row * plane + start));
    copyInto(view, own);
    own.dispose();
    return [name, view] as const;
  });
  member.state = Object.fromEntries(views);
}

/** Whether these parameters' states still lie where a batch was made of them. */
export const isBatchOf = ({ members, state }: Batch, wanted: readonly Remembered[]): boolean =>
  members.length === wanted.length &&
  wanted.every((member, index) => {
    const own = Object.values(member.state);
    return (
      member === members[index] &&
      own.every(({ storage }) => storage === state?.storage) &&
      own.length === state?.shape[0]
    );
  });
