/** Transforms on the device: passes in threadgroup memory, in two steps for long lines; see kernels/fft/fft.metal. */
import type { MetalImplementation, TicketRange } from "../backend/backend.ts";
import { launch, noFloat64, reads, spanOf, writes } from "../backend/metal/launch.ts";
import { scratchTensor } from "../backend/metal/scratch.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { MOST_ELEMENTS, paddedLength, radicesOf, splitOf } from "./lengths.metal.ts";
import { type ComplexTransform, fftParameters, partsOf, type RealTransform } from "./primitive.ts";

/** Elements per thread: PER_THREAD in the kernel. */
const PER_THREAD = 8;
/** Lines share a threadgroup only up to this many elements, so that short lines use many threadgroups. */
const GROUP_ELEMENTS = 2048;

/** The kernel's flags. */
const REAL_INPUT = 1;
const HALF_INPUT = 2;
const REAL_OUTPUT = 4;
const CHIRP_INPUT = 8;
const CHIRP_OUTPUT = 16;
const SWAP_INPUT = 32;
const SWAP_OUTPUT = 64;
const LINES_FIRST = 128;
const LINES_LAST = 256;
const SWAP_RESULT = 512;

/**
 * The input or the output of a transform: its elements per row in memory, the elements that are not 0 or dropped, and
 * flags.
 */
interface End {
  readonly row: number;
  readonly length: number;
  readonly flags: number;
}

interface Rows {
  readonly outer: number;
  readonly inner: number;
  readonly length: number;
  /** The length of the user's transform, which differs from `length` in Bluestein's algorithm. */
  readonly rowLength: number;
  readonly from: End;
  readonly to: End;
  readonly scale: number;
  readonly tableStart: number;
}

interface Operands {
  readonly x: Tensor;
  readonly table: Tensor;
  readonly out: Tensor;
}

/** The strides of a line within a row: see the kernel. */
interface Steps {
  readonly length: number;
  readonly mid: number;
  readonly inMid: number;
  readonly inStep: number;
  readonly outMid: number;
  readonly outStep: number;
  readonly twiddle: number;
}

function launchLines(operands: Operands, rows: Rows, steps: Steps): TicketRange {
  const { x, table, out } = operands;
  const { outer, inner, from, to, rowLength, scale, tableStart } = rows;
  const lines = outer * steps.mid * inner;
  const group = Math.max(1, Math.min(lines, Math.floor(GROUP_ELEMENTS / steps.length)));
  const radices = radicesOf(steps.length);
  const across = (step: number) => inner > 1 || step > 1;
  const flags =
    from.flags | to.flags | (across(steps.inStep) ? LINES_FIRST : 0) | (across(steps.outStep) ? LINES_LAST : 0);
  return launch({
    file: "fft/fft.metal",
    name: "fft",
    operands: [reads(x), reads(table), writes(out)],
    parameters: fftParameters.bytes({
      ...steps,
      lines,
      inner,
      inRow: from.row,
      outRow: to.row,
      inLength: from.length,
      outLength: to.length,
      rowLength,
      tableStart,
      group,
      passes: radices.length,
      radices,
      flags,
      scale,
    }),
    threadgroups: [Math.ceil(lines / group)],
    threadgroup: Math.ceil((group * steps.length) / PER_THREAD / 32) * 32,
    threadgroupMemory: [Math.ceil((group * steps.length) / 2) * 16], // pairs of float32
  });
}

/** Transforms rows of a smooth length: in one launch, or as the columns and then the rows of a matrix [a, b]. */
function transformRows(operands: Operands, rows: Rows): TicketRange {
  const { length, outer, inner, from, to } = rows;
  const whole = { length, mid: 1, inMid: 0, inStep: 1, outMid: 0, outStep: 1, twiddle: 0 };
  if (length <= MOST_ELEMENTS) return launchLines(operands, rows, whole);
  const [a, b] = splitOf(length)!;
  const between = scratchTensor([outer, length, inner, 2], "float32");
  const middle: End = { row: length, length, flags: 0 };
  const columns = { length: a, mid: b, inMid: 1, inStep: b, outMid: 1, outStep: b, twiddle: length };
  const first = launchLines({ ...operands, out: between }, { ...rows, from, to: middle, scale: 1 }, columns);
  const lines = { length: b, mid: a, inMid: b, inStep: 1, outMid: 1, outStep: a, twiddle: 0 };
  const last = launchLines({ ...operands, x: between }, { ...rows, from: middle, to }, lines);
  between.dispose();
  return spanOf([first, last]);
}

/** Transforms rows of any length. Those with large prime factors are convolved with a chirp (Bluestein's algorithm). */
function transformAny(operands: Operands, rows: Rows, inverse: boolean): TicketRange {
  const { length, outer, inner, from, to } = rows;
  const swaps = { from: inverse ? SWAP_INPUT : 0, to: inverse ? SWAP_OUTPUT : 0 };
  const begin = { ...from, flags: from.flags | swaps.from };
  const end = { ...to, flags: to.flags | swaps.to };
  if (radicesOf(length).length > 0 || length === 1) return transformRows(operands, { ...rows, from: begin, to: end });
  const padded = paddedLength(length);
  const spectrum = scratchTensor([outer, padded, inner, 2], "float32");
  const middle: End = { row: padded, length: padded, flags: 0 };
  const first = transformRows(
    { ...operands, out: spectrum },
    {
      ...rows,
      length: padded,
      scale: 1,
      tableStart: length,
      from: { ...begin, flags: begin.flags | CHIRP_INPUT },
      to: { ...middle, flags: CHIRP_OUTPUT },
    },
  );
  const last = transformRows(
    { ...operands, x: spectrum },
    {
      ...rows,
      length: padded,
      tableStart: 0,
      from: { ...middle, flags: SWAP_INPUT },
      to: { ...end, flags: end.flags | SWAP_RESULT | CHIRP_OUTPUT },
    },
  );
  spectrum.dispose();
  return spanOf([first, last]);
}

/** The longest line: one with two factors that fit into threadgroup memory. */
const tooLong = (length: number): string | undefined =>
  (radicesOf(length).length > 0 || length <= 1 ? splitOf(length) : splitOf(paddedLength(length)))
    ? undefined
    : "the line is too long for two steps in threadgroup memory";

export const complexMetal: MetalImplementation<ComplexTransform, [Tensor, ...Tensor[]], [Tensor]> = {
  unsupported: (call) => noFloat64(call) ?? tooLong(call.inputs[0].shape[call.attributes.axis]),
  run({ inputs: [x, table = x], outputs: [out], attributes: { axis, inverse, scale } }) {
    const parts = partsOf(x, axis);
    const end: End = { row: parts.length, length: parts.length, flags: 0 };
    const rows = { ...parts, rowLength: parts.length, from: end, to: end, scale, tableStart: 0 };
    return transformAny({ x, table, out }, rows, inverse);
  },
};

export const realMetal: MetalImplementation<RealTransform, [Tensor, ...Tensor[]], [Tensor]> = {
  unsupported: (call) => noFloat64(call) ?? tooLong(call.attributes.length),
  run({ inputs: [x, table = x], outputs: [out], attributes: { length, toReal, inverse, scale } }) {
    const half = Math.floor(length / 2) + 1;
    const outer = (toReal ? out : x).size / length;
    const from = toReal ? { row: half, length, flags: HALF_INPUT } : { row: length, length, flags: REAL_INPUT };
    const to = toReal ? { row: length, length, flags: REAL_OUTPUT } : { row: half, length: half, flags: 0 };
    const rows = { outer, inner: 1, length, rowLength: length, from, to, scale, tableStart: 0 };
    return transformAny({ x, table, out }, rows, inverse);
  },
};
