/**
 * Describes calls whose results can be computed in parts: by elements for elementwise calls, by rows for rowwise ones.
 */
import { nativeOrdinals } from "../backend/cpu/tables.ts";
import { MAX_RANK } from "../tensor/shape.ts";
import type { RecordedCall } from "./recording.ts";

/** An operand of a part. */
export interface LinkOperand {
  /** The index of the operand's offset in the block. */
  readonly offset: number;
  /** The offset that was recorded. */
  readonly start: number;
  /** Elements from one unit to the next: 0 if all units read the same ones. */
  readonly step: number;
}

/** A call that can compute any range of its units. */
export interface Link {
  readonly units: number;
  /** Elements of a unit. */
  readonly width: number;
  /** Whether the result has one element per row. */
  readonly isThin: boolean;
  /** The index in the block at which the number of units is stored. */
  readonly count: number;
  readonly operands: readonly LinkOperand[];
  /** The operand that is the result. */
  readonly result: number;
  /** Numbers of the block that differ from the recorded ones: index and value. */
  readonly changes: readonly (readonly [at: number, value: number])[];
}

/** Functions with a `LoopBlock` at the end of their blocks. */
const elementwise: ReadonlySet<string> = new Set(["unary", "binary", "ternary", "copy"]);

/** Reductions of a row. For short rows, the last bits of the results depend on the number of rows. */
const folds = ["sum", "mean", "amax", "amin", "logsumexp", "norm2"] as const;

const MOST_WIDTH = 8192;
const LEAST_FOLDED = { exact: 65, fast: 2 } as const;

/** A loop over axes: its shape, and the strides of each operand. */
interface Nest {
  readonly shape: readonly number[];
  readonly strides: readonly (readonly number[])[];
}

interface LinkOptions {
  /** The length of rows. Default: of the call's last axis. */
  readonly width?: number;
  /** Whether the last bits of results may change. */
  readonly isFast: boolean;
}

/** Returns the ways to compute a call by units: by elements, and by rows. */
export function linksOf(call: RecordedCall, { width, isFast }: LinkOptions): Link[] {
  const { name } = call.call.description;
  if (call.call.rows > 0) return [];
  if (name === "reduce") return foldOf(call, isFast ? LEAST_FOLDED.fast : LEAST_FOLDED.exact, width);
  const result = call.operands.at(-1);
  if (
    !elementwise.has(name) ||
    result?.source !== "computed" ||
    call.operands.indexOf(result) < call.operands.length - 1
  )
    return [];
  const nest = nestOf(call);
  const length = width ?? nest.shape.at(-1) ?? 1;
  return [byUnits(call, nest, 1), byUnits(call, nest, length), thin(call, nest, length)].filter(
    (link): link is Link => link !== undefined,
  );
}

/** The index of the nest of an elementwise call (`LoopBlock` in `native/cpu/elementwise/loop.h`). */
const nestAt = ({ call, operands }: RecordedCall): number =>
  call.description.length - operands.length - MAX_RANK * (operands.length + 1) - 1;

function nestOf(call: RecordedCall): Nest {
  return nestIn(call.block, nestAt(call), call.operands.length);
}

/** Returns the nest at an index of a block. */
export function nestIn(block: Float64Array, at: number, operands: number): Nest {
  const rank = block[at];
  const list = (start: number) => [...block.subarray(start, start + rank)];
  const strides = Array.from({ length: operands }, (_, operand) => list(at + 1 + MAX_RANK * (operand + 1)));
  return { shape: list(at + 1), strides };
}

export const product = (sizes: readonly number[]): number => sizes.reduce((total, size) => total * size, 1);

/**
 * An elementwise call in units of `width` elements, as many as the last axes have together. Along these axes, each
 * operand is dense or has a single element; the same holds along all other axes.
 */
function byUnits(call: RecordedCall, { shape, strides }: Nest, width: number): Link | undefined {
  const units = product(shape) / width;
  const inner = width === 1 ? shape.length : innerAxes(shape, width);
  if (inner === undefined || width > MOST_WIDTH || !Number.isInteger(units)) return undefined;
  const steps = strides.map((list) => stepsOf(shape, list, inner, width));
  if (steps.includes(undefined) || steps.at(-1)?.[0] !== width) return undefined;
  const at = nestAt(call);
  const sizes = width === 1 ? [units] : [units, width];
  return link(call, { units, width, isThin: false, sizes }, at, steps as (readonly [number, number])[]);
}

/** An elementwise call on one element per row. */
function thin(call: RecordedCall, { shape, strides }: Nest, width: number): Link | undefined {
  if (width === 1 || width > MOST_WIDTH) return undefined;
  const units = product(shape);
  const steps = strides.map((list) => stepsOf(shape, list, shape.length, 1));
  if (steps.includes(undefined) || steps.at(-1)?.[0] !== 1) return undefined;
  const facts = { units, width, isThin: true, sizes: [units] };
  return link(call, facts, nestAt(call), steps as (readonly [number, number])[]);
}

/**
 * Returns the first of the last axes that together have `width` elements; undefined if there are no such axes.
 */
function innerAxes(shape: readonly number[], width: number): number | undefined {
  let elements = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    elements *= shape[axis];
    if (elements === width) return axis;
    if (elements > width) return undefined;
  }
  return undefined;
}

/** Returns the steps along units and within a unit; undefined for other layouts. */
function stepsOf(
  shape: readonly number[],
  strides: readonly number[],
  inner: number,
  width: number,
): readonly [number, number] | undefined {
  const within = width === 1 ? 1 : stepOf(shape.slice(inner), strides.slice(inner));
  const along = stepOf(shape.slice(0, inner), strides.slice(0, inner));
  if (within === undefined || along === undefined) return undefined;
  if ((within !== 0 && within !== 1) || (along !== 0 && along !== (within === 0 ? 1 : width))) return undefined;
  return [along, width === 1 ? 0 : within];
}

/**
 * Returns the stride of several axes merged into one: 0 for a repeated element, else the stride of the innermost axis;
 * undefined if they can't be merged.
 */
export function stepOf(shape: readonly number[], strides: readonly number[]): number | undefined {
  let [step, next]: [number | undefined, number] = [undefined, 0];
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    if (shape[axis] === 1) continue;
    if (step === undefined) step = strides[axis];
    else if (strides[axis] !== next) return undefined;
    next = strides[axis] * shape[axis];
  }
  return step ?? 0;
}

interface LinkFacts extends Pick<Link, "units" | "width" | "isThin"> {
  /** The shape of the loop nest over all units. */
  readonly sizes: readonly number[];
}

/** An elementwise call with another nest. @param steps of each operand: along units, and within a unit */
function link(
  { block, call, operands }: RecordedCall,
  { sizes, ...facts }: LinkFacts,
  nest: number,
  steps: readonly (readonly [number, number])[],
): Link {
  const strides = steps.flatMap((each, operand) =>
    each.slice(0, sizes.length).map((step, axis) => [nest + 1 + MAX_RANK * (operand + 1) + axis, step] as const),
  );
  const first = call.description.length - operands.length;
  return {
    ...facts,
    count: nest + 1,
    result: operands.length - 1,
    operands: steps.map(([step], at) => ({ offset: first + at, start: block[first + at], step })),
    changes: [[nest, sizes.length], ...sizes.map((size, axis) => [nest + 1 + axis, size] as const), ...strides],
  };
}

/** A reduction of dense rows to one element each. */
function foldOf(recorded: RecordedCall, least: number, given?: number): Link[] {
  const { block, call, operands } = recorded;
  const at = (name: string): number => call.description.fields.find((field) => field.name === name)!.offset;
  const ordinals = nativeOrdinals("Reduction");
  const isFold = folds.some((name) => ordinals[name] === block[at("operation")]);
  const [input, out] = operands;
  if (!isFold || operands[2] || out?.source !== "computed" || input === out) return [];
  const [keptAt, reducedAt] = [at("kept"), at("reduced")];
  const kept = nestIn(block, keptAt, 2);
  const reduced = nestIn(block, reducedAt, 1);
  const width = product(reduced.shape);
  const units = product(kept.shape);
  if (width < least || width > MOST_WIDTH || (given !== undefined && given !== width)) return [];
  if (stepOf(reduced.shape, reduced.strides[0]) !== 1) return [];
  const [from, to] = kept.strides.map((list) => stepOf(kept.shape, list));
  if (from !== width || to !== 1) return [];
  const [inputOffset, outputOffset] = [at("inputOffset"), at("outputOffset")];
  const strideAt = (operand: number) => keptAt + 1 + MAX_RANK * (operand + 1);
  return [
    {
      units,
      width,
      isThin: true,
      count: keptAt + 1,
      result: 1,
      operands: [
        { offset: inputOffset, start: block[inputOffset], step: width },
        { offset: outputOffset, start: block[outputOffset], step: 1 },
        { offset: at("indicesOffset"), start: 0, step: 0 },
      ],
      changes: [
        [keptAt, 1],
        [keptAt + 1, units],
        [strideAt(0), width],
        [strideAt(1), 1],
      ],
    },
  ];
}
