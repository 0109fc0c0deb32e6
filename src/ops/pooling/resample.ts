/**
 * Weighted sums over windows along the last axes: average pooling and interpolation, which are products of one map per
 * axis, and their gradients, which are the transposed maps. On metal they are composed of other operations.
 */
import { noGrad } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import type { Implementation } from "../../backend/backend.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { execute } from "../../backend/dispatch.ts";
import { array, dtype, whole } from "../../backend/fields.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { store, toNumbers } from "../../backend/reference/elements.ts";
import { firstBackend } from "../../backend/registry.ts";
import { elementCount } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { contiguous } from "../copy/copy.ts";

/**
 * The map of one axis. Element i of the result is the sum over k of factors[s + k] · weights[i][k] · x[s + k], divided
 * by divisors[i], with s = starts[i] and k below lengths[i].
 */
export interface AxisMap {
  readonly input: number;
  readonly starts: readonly number[];
  readonly lengths: readonly number[];
  /** The weights of all windows in order; undefined if all are 1. */
  readonly weights?: readonly number[] | undefined;
  /** The divisors of all windows in order; undefined if all are 1. */
  readonly divisors?: readonly number[] | undefined;
  readonly factors?: readonly number[] | undefined;
}

interface ResampleAttributes {
  readonly planes: number;
  /** Three maps: of depth, height and width. */
  readonly axes: readonly AxisMap[];
}

const AXES = 3;
const perAxis = array(whole, AXES);
const resampleCall = cpuCall(
  "resample",
  {
    dtype,
    planes: whole,
    input: perAxis,
    output: perAxis,
    weights: perAxis,
    offsets: array(whole, 2),
    tableSize: whole,
  },
  ["x", "output", "table"],
);

/** The tables of maps, in the order that native/cpu/pooling/resample.h describes. */
const tables = new WeakMap<AxisMap, Float64Array>();

function tableOf(map: AxisMap): Float64Array {
  const made = tables.get(map);
  if (made) return made;
  const { input, starts, lengths, weights = [] } = map;
  const { divisors = new Array<number>(starts.length).fill(1), factors = new Array<number>(input).fill(1) } = map;
  const table = Float64Array.from([starts, lengths, divisors, factors, weights].flat());
  tables.set(map, table);
  return table;
}

/** What a call of the dylib needs of the maps: their sizes, and their tables one after the other. */
interface Joined {
  readonly axes: readonly AxisMap[];
  readonly sizes: Readonly<Record<"input" | "output" | "weights", readonly number[]>>;
  readonly table: Float64Array;
}

/** The last {@link Joined} of each map of a last axis: most calls have the sizes of an earlier one. */
const known = new WeakMap<AxisMap, Joined>();

function joinedOf(axes: readonly AxisMap[]): Joined {
  const before = known.get(axes[AXES - 1]);
  if (before?.axes.every((map, at) => map === axes[at])) return before;
  const parts = axes.map(tableOf);
  const table = new Float64Array(parts.reduce((sum, { length }) => sum + length, 0));
  for (let at = 0, begin = 0; at < parts.length; begin += parts[at++].length) table.set(parts[at], begin);
  const sizes = {
    input: axes.map(({ input }) => input),
    output: axes.map(({ starts }) => starts.length),
    weights: axes.map(({ weights }) => weights?.length ?? 0),
  };
  const joined = { axes, sizes, table };
  known.set(axes[AXES - 1], joined);
  return joined;
}

const resampleCpu: Implementation<ResampleAttributes, [Tensor], [Tensor]> = {
  run({ operation, inputs: [x], outputs: [output], attributes: { planes, axes } }) {
    const { sizes, table } = joinedOf(axes);
    const offsets = [x.offset, output.offset];
    resampleCall(operation, { dtype: x.dtype, planes, ...sizes, offsets, tableSize: table.length }, [x, output, table]);
  },
};

/** Applies a map to the middle axis of [before, input, after]. */
function along({ input, starts, lengths, weights, divisors, factors }: AxisMap, x: Float64Array, after: number) {
  const before = x.length / Math.max(1, input * after);
  const result = new Float64Array(before * starts.length * after).fill(-0); // starts at −0: a sum of only −0 is −0
  const at = (row: number, to: number): number => (row * starts.length + to) * after;
  let weight = 0;
  for (const [to, start] of starts.entries()) {
    if (lengths[to] === 0) for (let row = 0; row < before; row++) result.fill(0, at(row, to), at(row, to) + after);
    for (let from = start; from < start + lengths[to]; from++, weight++) {
      const factor = (weights?.[weight] ?? 1) * (factors?.[from] ?? 1);
      for (let row = 0; row < before; row++)
        for (let each = 0; each < after; each++)
          result[at(row, to) + each] += factor * x[(row * input + from) * after + each];
    }
    for (let row = 0; row < before; row++)
      for (let each = 0; each < after; each++) result[at(row, to) + each] /= divisors?.[to] ?? 1;
  }
  return result;
}

const resampleReference: Implementation<ResampleAttributes, [Tensor], [Tensor]> = {
  run({ inputs: [x], outputs: [output], attributes: { axes } }) {
    const sizes = axes.map(({ input }) => input); // the axes after the one that is mapped have their old sizes
    let partial = toNumbers(x);
    for (const [at, map] of axes.entries()) partial = along(map, partial, elementCount(sizes.slice(at + 1)));
    store(output, partial);
  },
};

const resamplePrimitive = definePrimitive<ResampleAttributes>({
  name: "resample",
  family: "pooling",
  implementations: {
    metal: { missing: "metal composes averages and interpolations of other operations" },
    cpu: resampleCpu,
    reference: resampleReference,
  },
});

/** Whether a backend has the primitive: all but metal. */
export const canResample = (): boolean => firstBackend() !== "metal";

/** A map that does not change an axis. */
const unchanged: AxisMap = { input: 1, starts: [0], lengths: [1] };

const adjoints = new WeakMap<AxisMap, AxisMap>();

/** The transposed map, which converts the gradient of the result to the gradient of the input. */
function adjointOf(map: AxisMap): AxisMap {
  const known = adjoints.get(map);
  if (known) return known;
  const adjoint = transposed(map);
  adjoints.set(map, adjoint);
  adjoints.set(adjoint, map);
  return adjoint;
}

/** Windows start and end in ascending order, so the results that an element reaches are adjacent. */
function transposed({ input, starts, lengths, weights, divisors, factors }: AxisMap): AxisMap {
  const [from, counts]: [number[], number[]] = [[], []];
  let [first, next] = [0, 0];
  for (let element = 0; element < input; element++) {
    while (first < starts.length && starts[first] + lengths[first] <= element) first++;
    while (next < starts.length && starts[next] <= element) next++;
    const count = Math.max(0, next - first);
    from.push(count === 0 ? 0 : first);
    counts.push(count);
  }
  return {
    input: starts.length,
    starts: from,
    lengths: counts,
    weights: weights && transposedWeights({ starts, lengths, weights }, from, counts),
    divisors: factors?.map((factor) => 1 / factor),
    factors: divisors?.map((divisor) => 1 / divisor),
  };
}

function transposedWeights(
  { starts, lengths, weights }: { starts: readonly number[]; lengths: readonly number[]; weights: readonly number[] },
  from: readonly number[],
  counts: readonly number[],
): number[] {
  const begins = counts.map(() => 0);
  for (let at = 1; at < counts.length; at++) begins[at] = begins[at - 1] + counts[at - 1];
  const result = new Array<number>((begins.at(-1) ?? 0) + (counts.at(-1) ?? 0)).fill(0);
  let next = 0;
  for (const [window, start] of starts.entries())
    for (let element = start; element < start + lengths[window]; element++)
      result[begins[element] + window - from[element]] = weights[next++];
  return result;
}

/** Applies maps to the last axes of floats, and records the gradient. */
export function resample(operation: string, x: Tensor, maps: readonly AxisMap[]): Tensor {
  const lead = x.shape.slice(0, x.rank - maps.length);
  const axes = [...new Array<AxisMap>(AXES - maps.length).fill(unchanged), ...maps];
  const shape = [...lead, ...maps.map(({ starts }) => starts.length)];
  const dense = noGrad(() => contiguous(x));
  const output = execute(resamplePrimitive, [dense], shape, x.dtype, { planes: elementCount(lead), axes }, operation);
  record(operation, [x], [output], [], ([gradient]) => [resample(operation, gradient, maps.map(adjointOf))]);
  return output;
}
