/** Decoding steps on metal: a kernel rotates and stores the new tokens, and the kernels for few queries attend. */
import type { MetalImplementation } from "../../backend/backend.ts";
import { whole } from "../../backend/fields.ts";
import { launch, metalTypeOf, reads, spanOf, startOf, writes } from "../../backend/metal/launch.ts";
import { scratchTensor } from "../../backend/metal/scratch.ts";
import type { Struct } from "../../backend/metal/struct.ts";
import { getOrMake } from "../../core/collections.ts";
import { tupleOf } from "../../core/tuples.ts";
import { currentCapture } from "../../observe/capture.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { phaseOf } from "../position/rows.ts";
import { launchVector } from "./forward.metal.ts";
import { callOf, type Parts, parametersOf } from "./parameters.metal.ts";
import { attentionParameters, LARGEST_WIDTH, stepParameters } from "./primitive.ts";
import { type AttentionAttributes, problemOf } from "./problem.ts";
import { rowWidth } from "./room.ts";
import type { StepAttributes, StepRoom, StepSequence } from "./step.ts";

const THREADS = 256;

/** Returns why metal can't run a step with these rooms; undefined if it can. */
export function whyNoStep(
  { dtype }: Tensor,
  rooms: readonly StepRoom[],
  sequences: readonly StepSequence[],
): string | undefined {
  const [{ keys, values }] = tupleOf(rooms, 1);
  if (rooms.length > 1) return "several caches";
  if (keys.dtype !== dtype || dtype === "float64") return "a cache in another dtype";
  if (Math.max(rowWidth(keys), rowWidth(values)) > LARGEST_WIDTH) return "long rows";
  return areAlike(sequences) ? undefined : "sequences at different positions";
}

const areAlike = (sequences: readonly StepSequence[]): boolean =>
  sequences.every(({ position, first, rows }) => {
    const [other] = tupleOf(sequences, 1);
    return position === other.position && first === other.first && rows === other.rows;
  });

export const stepMetal: MetalImplementation<StepAttributes> = {
  unsupported: ({ inputs: [q, , , keys, values], attributes: { sequences } }) =>
    whyNoStep(q, [{ keys, values }], sequences),
  run({ inputs: [q, k, v], outputs: [out, keys, values], attributes }) {
    const { heads, replayed } = attributes;
    const [batch, tokens] = tupleOf(q.shape, 2);
    using rotated = scratchTensor([batch, heads, tokens, rowWidth(keys)], q.dtype);
    let [place] = attributes.sequences;
    /** Returns the place of a replay; undefined if the recording does not fit. */
    const next = () => {
      const sequences = replayed?.();
      if (!sequences || !areAlike(sequences)) return undefined;
      [place] = tupleOf(sequences, 1);
      return place;
    };
    const stored = store({ q, k, v, rotated, keys, values }, attributes, () => place, next);
    return spanOf([stored, attend({ rotated, out, keys, values }, attributes, () => place)!]);
  },
};

type Operands<Name extends string> = Readonly<Record<Name, Tensor>>;

/** Launches the kernel that rotates q and stores the rows of the new tokens. */
function store(
  operands: Operands<"q" | "k" | "v" | "rotated" | "keys" | "values">,
  { heads, kvHeads, rotation }: StepAttributes,
  place: () => StepSequence,
  next: () => StepSequence | undefined,
) {
  const { q, k, v, rotated, keys, values } = operands;
  const [dim, valueDim, pairs] = [rowWidth(keys), rowWidth(values), rotation.cycles.length];
  const [batch, tokens] = tupleOf(q.shape, 2);
  const bytes = stepParameters.bytes({
    q: projectionOf(q, dim),
    k: projectionOf(k, dim),
    v: projectionOf(v, valueDim),
    rotated: roomOf(rotated),
    keys: roomOf(keys),
    values: roomOf(values),
    heads,
    kvHeads,
    tokens,
    dim,
    valueDim,
    position: 0,
    pairs,
    ...(rotation.interleaved ? { step: 2, second: 1 } : { step: 1, second: pairs }),
    magnitude: rotation.magnitude,
    phases: phasesOf(rotation.cycles),
  });
  const write = writerOf(stepParameters, bytes);
  const bytesAt = ({ position, first, rows }: StepSequence) => {
    write("position", position);
    write("keys", startAt(keys, first + rows - tokens));
    write("values", startAt(values, first + rows - tokens));
    return bytes;
  };
  currentCapture()?.liveBytes(() => {
    const found = next();
    return found && bytesAt(found);
  });
  const width = Math.max(dim - pairs, valueDim);
  return launch({
    file: "attention/step.metal",
    name: `step_${metalTypeOf(q.dtype)}`,
    operands: [reads(q), reads(k), reads(v), writes(rotated), writes(keys), writes(values)],
    parameters: bytesAt(place()),
    grid: [width, heads + 2 * kvHeads, batch * tokens],
    threadgroup: [Math.min(width, THREADS), 1, 1],
  });
}

/**
 * Launches attention to the rows of the cache. How they are split into parts depends on the cache's capacity, so that
 * the dispatches of a replay are the same for any number of rows.
 */
function attend(
  { rotated, out, keys, values }: Operands<"rotated" | "out" | "keys" | "values">,
  { heads, scale, softcap, window = Infinity }: StepAttributes,
  place: () => StepSequence,
) {
  const [batch, , tokens] = tupleOf(rotated.shape, 3);
  const valueDim = rowWidth(values);
  const strides = [tokens * heads * valueDim, valueDim, heads * valueDim, 1];
  using split = new Tensor(out.storage, out.dtype, [batch, heads, tokens, valueDim], strides, out.offset);
  const attributes: AttentionAttributes = {
    inputs: ["q", "k", "v"],
    outputs: ["out"],
    scale,
    softcap,
    band: { left: window - 1, right: 0 },
    alignment: "bottom-right",
    dropout: undefined,
    packed: undefined,
  };
  const call = callOf(problemOf({ inputs: [rotated, keys, values], outputs: [split], attributes }), rotated);
  return launchVector(call, (cut) => {
    const bytes = parametersOf(call, cut);
    const write = writerOf(attentionParameters, bytes);
    const bytesNow = () => {
      const { first, rows } = place();
      write("keys", rows);
      write("k", startAt(keys, first));
      write("v", startAt(values, first));
      write("partKeys", partKeysOf(cut, rows));
      return bytes;
    };
    currentCapture()?.liveBytes(bytesNow);
    return bytesNow();
  });
}

const partKeysOf = ({ parts }: Parts, rows: number): number => Math.max(1, Math.ceil(rows / parts));

/** Returns a function that writes a whole number to a field of a struct, or to the first field of a nested struct. */
function writerOf(struct: Struct<never>, bytes: Uint8Array): (field: string, value: number) => void {
  const view = new DataView(bytes.buffer);
  return (field, value) => whole.metal.write(view, struct.metal.members[field].offset, value);
}

const startAt = (room: Tensor, row: number): number => startOf(room) + row * room.strides[2];

/** The layout of projections: [batch, tokens, heads · width] or [batch, tokens, heads, width]. */
function projectionOf(x: Tensor, width: number) {
  const [batch, row, head] = tupleOf(x.strides, 3);
  return { start: startOf(x), batch, row, head: x.rank === 4 ? head : width, column: 1 };
}

function roomOf(room: Tensor) {
  const [batch, head, row] = tupleOf(room.strides, 3);
  return { start: startOf(room), batch, head, row, column: 1 };
}

const phases = new WeakMap<Float64Array, readonly bigint[]>();

/** Returns the phases of a rotation, which all layers of a model share. */
const phasesOf = (cycles: Float64Array): readonly bigint[] =>
  getOrMake(phases, cycles, () => Array.from(cycles, phaseOf));
