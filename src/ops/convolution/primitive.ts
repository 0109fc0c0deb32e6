/**
 * Convolutions as one call of a backend, which copies at most a tile of x. The reference computes them as matrix
 * products: see `bilinear.ts`.
 */
import type { Implementation, Primitive } from "../../backend/backend.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { array, dtype, whole } from "../../backend/fields.ts";
import { getBackend, orderFrom } from "../../backend/policy.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { store, toNumbers } from "../../backend/reference/elements.ts";
import { whyUnavailable } from "../../backend/registry.ts";
import { tupleOf } from "../../core/tuples.ts";
import { accumulationDType, type DType } from "../../tensor/dtype.ts";
import { elementCount } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { convolutionMetal, convolutionTransposedMetal, convolutionWeightMetal } from "./windows.metal.ts";

/** Sizes of one group, and sizes along three axes, as described in `convolution.h`. */
export interface ConvolutionAttributes {
  readonly batch: number;
  readonly groups: number;
  readonly channels: number;
  readonly outputs: number;
  readonly input: readonly number[];
  readonly output: readonly number[];
  readonly kernel: readonly number[];
  readonly stride: readonly number[];
  readonly dilation: readonly number[];
  /** Zeros before x; negative if the kernel starts after the first element of x. */
  readonly before: readonly number[];
}

const AXES = 3;
const perAxis = array(whole, AXES);
const fields = {
  dtype,
  batch: whole,
  groups: whole,
  channels: whole,
  outputs: whole,
  input: perAxis,
  output: perAxis,
  kernel: perAxis,
  stride: perAxis,
  dilation: perAxis,
  before: perAxis,
  result: whole,
  offsets: array(whole, 3),
};
const convolutionCall = cpuCall("convolution", fields, ["first", "second", "result"]);
const perImageAxis = array(whole, 2);
const foldFields = {
  dtype,
  planes: whole,
  input: perImageAxis,
  output: perImageAxis,
  kernelSize: perImageAxis,
  stride: perImageAxis,
  dilation: perImageAxis,
  before: perImageAxis,
  offsets: array(whole, 2),
};
/** Adds windows [planes, …kernel, …output] to images [planes, …input]; both are contiguous. */
export const foldCall = cpuCall("fold", foldFields, ["windows", "images"]);
/** Copies the windows of images; elements outside are 0. */
export const unfoldCall = cpuCall("unfold", foldFields, ["images", "windows"]);
/** The numbers that identify the results in native code. */
const resultNumbers = { y: 0, x: 1, weight: 2 } as const;

const metals = { y: convolutionMetal, x: convolutionTransposedMetal, weight: convolutionWeightMetal } as const;

/** Computes y from x and the weight. All operands are contiguous. */
export const convolutionPrimitive = definition("convolution", "y", (attributes, [x, weight, y]) =>
  forEachTerm(attributes, (at, weightAt, result) => {
    y[result] += x[at] * weight[weightAt];
  }),
);

/** Computes x's gradient from y's gradient and the weight. All operands are contiguous. */
export const convolutionTransposedPrimitive = definition("convolutionTransposed", "x", (attributes, [y, weight, x]) =>
  forEachTerm(attributes, (at, weightAt, result) => {
    x[at] += y[result] * weight[weightAt];
  }),
);

/** Computes the weight's gradient from x and y's gradient. All operands are contiguous. */
export const convolutionWeightPrimitive = definition("convolutionWeight", "weight", (attributes, [x, y, weight]) =>
  forEachTerm(attributes, (at, weightAt, result) => {
    weight[weightAt] += x[at] * y[result];
  }),
);

/** The backend that would run convolutions. */
const firstBackend = () => orderFrom[getBackend()].find((name) => whyUnavailable(name) === undefined);

/** Whether that backend runs a convolution as one call: every backend but the reference does. */
export const isOfOneCall = (): boolean => firstBackend() !== "reference";

/**
 * Returns the dtype of operands: metal's kernels read 2-byte floats and sum in float32; other backends get the
 * accumulation dtype.
 */
export const operandDType = (dtype: DType): DType => (firstBackend() === "metal" ? dtype : accumulationDType(dtype));

type Sum = (attributes: ConvolutionAttributes, operands: readonly Float64Array[]) => void;

function definition(name: string, sought: keyof typeof resultNumbers, sum: Sum): Primitive<ConvolutionAttributes> {
  const reference: Implementation<ConvolutionAttributes, [Tensor, Tensor], [Tensor]> = {
    run({ inputs: [first, second], outputs: [result], attributes }) {
      const sums = new Float64Array(result.size);
      sum(attributes, [toNumbers(first), toNumbers(second), sums]);
      store(result, sums);
    },
  };
  const cpu: Implementation<ConvolutionAttributes, [Tensor, Tensor], [Tensor]> = {
    unsupported: ({ inputs: [first] }) =>
      accumulationDType(first.dtype) === first.dtype ? undefined : `${first.dtype} is widened before a convolution`,
    run({ operation, inputs: [first, second], outputs: [result], attributes }) {
      const offsets = [first.offset, second.offset, result.offset];
      const block = { dtype: result.dtype, ...attributes, result: resultNumbers[sought], offsets };
      convolutionCall(operation, block, [first, second, result]);
    },
  };
  return definePrimitive<ConvolutionAttributes>({
    name,
    family: "convolution",
    implementations: { metal: metals[sought], cpu, reference },
  });
}

/**
 * Calls `body` for each term of the convolution's sums, with the positions of its factors in x and the weight, and the
 * position of the sum in the result.
 */
function forEachTerm(attributes: ConvolutionAttributes, body: (x: number, weight: number, y: number) => void): void {
  const [pixels, places, results] = tupleOf(
    [attributes.input, attributes.kernel, attributes.output].map(elementCount),
    3,
  );
  const inside = insideOf(attributes);
  for (let group = 0; group < attributes.batch * attributes.groups; group++)
    for (let output = 0; output < attributes.outputs; output++)
      for (let channel = 0; channel < attributes.channels; channel++)
        for (let place = 0; place < places; place++)
          for (let result = 0; result < results; result++) {
            const pixel = inside(result, place);
            if (pixel < 0) continue;
            const weight =
              (((group % attributes.groups) * attributes.outputs + output) * attributes.channels + channel) * places +
              place;
            body(
              (group * attributes.channels + channel) * pixels + pixel,
              weight,
              (group * attributes.outputs + output) * results + result,
            );
          }
}

/** Returns a function that maps a result and a kernel position to the position in x, or -1 outside of x. */
function insideOf({ input, output, kernel, stride, dilation, before }: ConvolutionAttributes) {
  return (result: number, place: number): number => {
    let [pixel, size] = [0, 1];
    for (let axis = AXES - 1; axis >= 0; axis--) {
      const at = (result % output[axis]) * stride[axis] + (place % kernel[axis]) * dilation[axis] - before[axis];
      if (at < 0 || at >= input[axis]) return -1;
      pixel += at * size;
      size *= input[axis];
      result = Math.floor(result / output[axis]);
      place = Math.floor(place / kernel[axis]);
    }
    return pixel;
  };
}
