/**
 * Convolutions on metal: sums over windows, computed as matrix products whose right factor is never written to memory
 * (implicit GEMM), or directly for groups of few rows. The adjoint with respect to x has one launch for each remainder
 * of x's positions modulo the stride, which avoids multiplying by zeros between y's elements.
 */
import type { MetalImplementation, OperationCall, TicketRange } from "../../backend/backend.ts";
import { array, whole } from "../../backend/fields.ts";
import { launch, metalTypeOf, noFloat64, reads, spanOf, writes } from "../../backend/metal/launch.ts";
import { scratchTensor } from "../../backend/metal/scratch.ts";
import { struct } from "../../backend/metal/struct.ts";
import { elementCount } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { ConvolutionAttributes } from "./primitive.ts";

const perAxis = array(whole, 3);
const windowsParameters = struct("Windows", {
  batch: whole,
  groups: whole,
  channels: whole,
  rows: whole,
  grid: perAxis,
  source: perAxis,
  step: perAxis,
  divisor: perAxis,
  places: perAxis,
  shift: perAxis,
  shiftStep: perAxis,
  kernelSize: perAxis,
  firstPlace: perAxis,
  placeStep: perAxis,
  result: perAxis,
  resultFirst: perAxis,
  resultStep: perAxis,
  weightGroup: whole,
  weightRow: whole,
  weightChannel: whole,
  splits: whole,
  splitLength: whole,
});
type Windows = Parameters<typeof windowsParameters.bytes>[0];

const MATRICES = "convolution/matrices.metal";
const DIRECT = "convolution/direct.metal";
/** The tile of a threadgroup in `matrices.metal`. */
const TILE = { rows: 32, columns: 64, threads: 128 } as const;
const SIMD_WIDTH = 32;
/** Groups with fewer rows are summed directly. */
const LEAST_ROWS = 8;
/**
 * The weight's gradient is split into parts to get about THREADGROUPS threadgroups, with at least LEAST_POSITIONS
 * positions per part.
 */
const THREADGROUPS = 256;
const LEAST_POSITIONS = 256;
/**
 * Maximum number of remainders of the stride with one launch each. With more, a single launch tests every kernel
 * position for an element of y.
 */
const MOST_PHASES = 64;
/** Limit of positions along an axis, and of elements in a group: kernels count them in 32 bits. */
const MOST = 2 ** 31;

/** Computes y from x and the weight. */
export const convolutionMetal: MetalImplementation<ConvolutionAttributes, [Tensor, Tensor], [Tensor]> = {
  unsupported,
  run({ inputs: [x, weight], outputs: [y], attributes }) {
    return launchSums(windowsOf(attributes), weight, x, y);
  },
};

/** Computes x's gradient from y's gradient and the weight. */
export const convolutionTransposedMetal: MetalImplementation<ConvolutionAttributes, [Tensor, Tensor], [Tensor]> = {
  unsupported,
  run({ inputs: [y, weight], outputs: [x], attributes }) {
    return spanOf(phasesOf(attributes).map((windows) => launchSums(windows, weight, y, x)));
  },
};

/** Computes the weight's gradient from x and y's gradient. */
export const convolutionWeightMetal: MetalImplementation<ConvolutionAttributes, [Tensor, Tensor], [Tensor]> = {
  unsupported,
  run({ inputs: [x, y], outputs: [weight], attributes }) {
    return launchWeight(windowsOf(attributes), y, x, weight);
  },
};

function unsupported(call: Pick<OperationCall<ConvolutionAttributes>, "inputs" | "attributes">): string | undefined {
  const { batch, groups, channels, outputs, input, output, kernel, stride, dilation, before } = call.attributes;
  const furthest = [0, 1, 2].map(
    (axis) => output[axis] * stride[axis] + kernel[axis] * dilation[axis] + Math.abs(before[axis]) + input[axis],
  );
  const sizes = [
    batch * elementCount(output),
    batch * elementCount(input),
    groups * channels * elementCount(kernel),
    groups * outputs * elementCount(kernel),
    ...furthest,
    ...stride,
  ];
  if (Math.max(...sizes) >= MOST) return `positions of a convolution exceed ${MOST}`;
  return noFloat64(call);
}

/** Returns a number for each axis. */
const axes = (of: (axis: number) => number): number[] => [0, 1, 2].map(of);

function windowsOf(attributes: ConvolutionAttributes): Windows {
  const places = elementCount(attributes.kernel);
  return {
    batch: attributes.batch,
    groups: attributes.groups,
    channels: attributes.channels,
    rows: attributes.outputs,
    grid: attributes.output,
    source: attributes.input,
    step: attributes.stride,
    divisor: [1, 1, 1],
    places: attributes.kernel,
    shift: attributes.before.map((before) => -before),
    shiftStep: attributes.dilation,
    kernelSize: attributes.kernel,
    firstPlace: [0, 0, 0],
    placeStep: [1, 1, 1],
    result: attributes.output,
    resultFirst: [0, 0, 0],
    resultStep: [1, 1, 1],
    weightGroup: attributes.outputs * attributes.channels * places,
    weightRow: attributes.channels * places,
    weightChannel: places,
    splits: 1,
    splitLength: 0,
  };
}

/** The kernel positions along an axis that reach elements of y from x's positions with one remainder. */
interface Phase {
  readonly first: number;
  readonly firstPlace: number;
  readonly placeStep: number;
  readonly places: number;
}

/**
 * For kernel position k, (first + before − k · dilation) / stride must be whole, which holds for every `placeStep`-th
 * position.
 */
function phaseOf(attributes: ConvolutionAttributes, axis: number, first: number): Phase {
  const [stride, dilation, kernel] = [attributes.stride[axis], attributes.dilation[axis], attributes.kernel[axis]];
  const placeStep = stride / greatestDivisor(stride, dilation);
  const isWhole = (place: number): boolean => (first + attributes.before[axis] - place * dilation) % stride === 0;
  const firstPlace = Array.from({ length: Math.min(placeStep, kernel) }, (_, place) => place).find(isWhole);
  if (firstPlace === undefined) return { first, firstPlace: 0, placeStep, places: 0 };
  return { first, firstPlace, placeStep, places: Math.ceil((kernel - firstPlace) / placeStep) };
}

const greatestDivisor = (a: number, b: number): number => (b === 0 ? a : greatestDivisor(b, a % b));

/** Returns the launches that together compute all of x. Remainders without kernel positions get zeros. */
function phasesOf(attributes: ConvolutionAttributes): Windows[] {
  const whole = transposedOf(attributes);
  const remainders = axes((axis) => Math.min(attributes.stride[axis], attributes.input[axis]));
  if (elementCount(remainders) > MOST_PHASES) return [whole];
  return Array.from({ length: elementCount(remainders) }, (_, at) => {
    const first = [Math.floor(at / remainders[1] / remainders[2]), Math.floor(at / remainders[2]), at];
    const phases = first.map((index, axis) => phaseOf(attributes, axis, index % remainders[axis]));
    return {
      ...whole,
      grid: axes((axis) => Math.ceil((attributes.input[axis] - phases[axis].first) / attributes.stride[axis])),
      divisor: [1, 1, 1],
      places: phases.map(({ places }) => places),
      shift: phases.map(({ first: start, firstPlace }, axis) =>
        Math.trunc(
          (start + attributes.before[axis] - firstPlace * attributes.dilation[axis]) / attributes.stride[axis],
        ),
      ),
      shiftStep: phases.map(
        ({ placeStep }, axis) => (-placeStep * attributes.dilation[axis]) / attributes.stride[axis],
      ),
      firstPlace: phases.map(({ firstPlace }) => firstPlace),
      placeStep: phases.map(({ placeStep }) => placeStep),
      resultFirst: phases.map(({ first: start }) => start),
      resultStep: attributes.stride,
    };
  });
}

/** Returns one launch for all positions of x. Kernel positions that fall between y's elements add nothing. */
function transposedOf(attributes: ConvolutionAttributes): Windows {
  const places = elementCount(attributes.kernel);
  return {
    ...windowsOf(attributes),
    channels: attributes.outputs,
    rows: attributes.channels,
    grid: attributes.input,
    source: attributes.output,
    step: [1, 1, 1],
    divisor: attributes.stride,

    shift: attributes.before,
    shiftStep: attributes.dilation.map((dilation) => -dilation),
    result: attributes.input,
    weightRow: places,
    weightChannel: attributes.channels * places,
  };
}

function launchSums(windows: Windows, weight: Tensor, source: Tensor, result: Tensor): TicketRange {
  const { groups, rows } = windows;
  const positions = windows.batch * elementCount(windows.grid);
  const operands = [reads(weight), reads(source), writes(result)];
  const types = typesOf(source, result);
  const parameters = windowsParameters.bytes(windows);
  const work = workOf(windows);
  if (isDirect(windows)) {
    const grid = [positions, rows, groups] as const;
    const name = `convolution_direct_${types}`;
    return launch({ file: DIRECT, name, operands, parameters, grid, threadgroup: TILE.threads, work });
  }
  const threadgroups = [Math.ceil(positions / TILE.columns), Math.ceil(rows / TILE.rows), groups] as const;
  const constants = [0, Number(areWeightQuads(windows, weight))] as const;
  return launchMatrices(constants, types, { operands, parameters, threadgroups, work });
}

/** Counts one multiplication and one addition for each element of a window, at each position, for each row. */
const workOf = ({ batch, grid, channels, places, rows, groups }: Windows): number =>
  [batch, grid, channels, places, rows, groups].flat().reduce<number>((product, size) => product * Number(size), 2);

/**
 * Whether four consecutive steps of a row, starting at a multiple of four, are adjacent and aligned in the weight, so
 * that they can be read by vector loads.
 */
const areWeightQuads = (windows: Windows, weight: Tensor): boolean =>
  windows.weightChannel === elementCount(windows.kernelSize) &&
  windows.weightChannel === elementCount(windows.places) &&
  [weight.offset, windows.weightRow, windows.weightGroup].every((elements) => Number(elements) % 4 === 0);

/**
 * Whether four consecutive positions of y's gradient can be read by one vector load: they are in one image, and parts
 * start at multiples of four.
 */
const areGradientQuads = (windows: Windows, gradient: Tensor): boolean =>
  [gradient.offset, elementCount(windows.grid), windows.splits === 1 ? 0 : windows.splitLength].every(
    (elements) => Number(elements) % 4 === 0,
  );

const isDirect = ({ groups, rows }: Windows): boolean => groups > 1 && rows < LEAST_ROWS;

/** The types in the host names of kernels: of the operands and of the result. */
const typesOf = (operand: Tensor, result: Tensor): string =>
  `${metalTypeOf(operand.dtype)}_${metalTypeOf(result.dtype)}`;

const launchMatrices = (
  constants: readonly [isOfWeight: 0 | 1, leftQuads: number],
  types: string,
  what: Pick<Parameters<typeof launch>[0], "operands" | "parameters" | "threadgroups" | "work">,
): TicketRange =>
  launch({
    file: MATRICES,
    name: `convolution_matrices_${types}`,
    constants,
    threadgroup: TILE.threads,
    ...what,
  });

/**
 * Launches the weight's gradient. Its sums over positions are split into parts if there would be too few threadgroups.
 */
function launchWeight(windows: Windows, gradient: Tensor, source: Tensor, weight: Tensor): TicketRange {
  const { groups, rows } = windows;
  const steps = windows.channels * elementCount(windows.places);
  const positions = windows.batch * elementCount(windows.grid);
  const operands = [reads(gradient), reads(source)];
  if (isDirect(windows))
    return launch({
      file: DIRECT,
      name: `convolution_direct_weight_${typesOf(source, weight)}`,
      operands: [...operands, writes(weight)],
      parameters: windowsParameters.bytes(windows),
      threadgroups: [steps, rows, groups],
      threadgroup: SIMD_WIDTH,
      work: workOf(windows),
    });
  const tiles = [Math.ceil(steps / TILE.columns), Math.ceil(rows / TILE.rows)] as const;
  const most = Math.ceil(THREADGROUPS / (tiles[0] * tiles[1] * groups));
  const splits = Math.max(1, Math.min(most, Math.floor(positions / LEAST_POSITIONS)));
  const cut = { ...windows, splits, splitLength: Math.ceil(positions / splits) };
  const parameters = windowsParameters.bytes(cut);
  const constants = [1, Number(areGradientQuads(cut, gradient))] as const;
  const threadgroups = [...tiles, groups * splits] as const;
  if (splits === 1)
    return launchMatrices(constants, typesOf(source, weight), {
      operands: [...operands, writes(weight)],
      parameters,
      threadgroups,
      work: workOf(windows),
    });
  using sums = scratchTensor([splits, ...weight.shape], "float32");
  return spanOf([
    launchMatrices(constants, typesOf(source, sums), {
      operands: [...operands, writes(sums)],
      parameters,
      threadgroups,
      work: workOf(windows),
    }),
    launch({
      file: MATRICES,
      name: `convolution_parts_${metalTypeOf(weight.dtype)}`,
      operands: [reads(sums), writes(weight)],
      parameters,
      grid: weight.size,
      threadgroup: TILE.threads,
    }),
  ]);
}
