/**
 * Convolutions as one call of a backend, which copies no more of x than a tile. In the reference they are products of
 * matrices: see `bilinear.ts`.
 */
import type { Implementation, Primitive } from "../../backend/backend.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { array, dtype, whole } from "../../backend/fields.ts";
import { getBackend, orderFrom } from "../../backend/policy.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { store, toNumbers } from "../../backend/reference/elements.ts";
import { whyUnavailable } from "../../backend/registry.ts";
import { accumulationDType, type DType } from "../../tensor/dtype.ts";
import { elementCount } from "../../tensor/shape.ts";
import { convolutionMetal, convolutionTransposedMetal, convolutionWeightMetal } from "./windows.metal.ts";

/** Sizes of one group, and of each of three axes: what `convolution.h` describes. */
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
  /** Zeros before x; fewer than none where x begins before the kernel. */
  readonly before: readonly number[];
}

const AXES = 3;
const perAxis = array(whole, AXES);
const fields = {
  ...{ dtype, batch: whole, groups: whole, channels: whole, outputs: whole },
  ...{ input: perAxis, output: perAxis, kernel: perAxis, stride: perAxis, dilation: perAxis, before: perAxis },
  ...{ result: whole, offsets: array(whole, 3) },
};
const convolutionCall = cpuCall("convolution", fields, ["first", "second", "result"]);
/** What is computed, as native code numbers it. */
const resultNumbers = { y: 0, x: 1, weight: 2 } as const;

const metals = { y: convolutionMetal, x: convolutionTransposedMetal, weight: convolutionWeightMetal } as const;

/** y of x and the weight, which lie without gaps. */
export const convolutionPrimitive = definition("convolution", "y", (attributes, [x, weight, y]) =>
  forEachTerm(attributes, (at, own, result) => {
    y![result]! += x![at]! * weight![own]!;
  }),
);

/** x's gradient, of the gradient of y and the weight, which lie without gaps. */
export const convolutionTransposedPrimitive = definition("convolutionTransposed", "x", (attributes, [y, weight, x]) =>
  forEachTerm(attributes, (at, own, result) => {
    x![at]! += y![result]! * weight![own]!;
  }),
);

/** The weight's gradient, of x and the gradient of y, which lie without gaps. */
export const convolutionWeightPrimitive = definition("convolutionWeight", "weight", (attributes, [x, y, weight]) =>
  forEachTerm(attributes, (at, own, result) => {
    weight![own]! += x![at]! * y![result]!;
  }),
);

/** Which backend would run them. */
const firstBackend = () => orderFrom[getBackend()].find((name) => whyUnavailable(name) === undefined);

/** Whether a backend with code of its own for them would run them. */
export const isOfOneCall = (): boolean => firstBackend() !== "reference";

/** The dtype in which operands are passed: metal's kernels read two bytes an element, and sum in float32. */
export const operandDType = (dtype: DType): DType => (firstBackend() === "metal" ? dtype : accumulationDType(dtype));

type Sum = (attributes: ConvolutionAttributes, operands: readonly Float64Array[]) => void;

function definition(name: string, sought: keyof typeof resultNumbers, sum: Sum): Primitive<ConvolutionAttributes> {
  const reference: Implementation<ConvolutionAttributes> = {
    run({ inputs: [first, second], outputs: [result], attributes }) {
      const sums = new Float64Array(result!.size);
      sum(attributes, [toNumbers(first!), toNumbers(second!), sums]);
      store(result!, sums);
    },
  };
  const cpu: Implementation<ConvolutionAttributes> = {
    unsupported: ({ inputs: [first] }) =>
      accumulationDType(first!.dtype) === first!.dtype ? undefined : `${first!.dtype} is widened before a convolution`,
    run({ operation, inputs: [first, second], outputs: [result], attributes }) {
      const offsets = [first!.offset, second!.offset, result!.offset];
      const block = { dtype: result!.dtype, ...attributes, result: resultNumbers[sought], offsets };
      convolutionCall(operation, block, [first, second, result]);
    },
  };
  return definePrimitive<ConvolutionAttributes>({
    ...{ name, family: "convolution", implementations: { metal: metals[sought], cpu, reference } },
  });
}

/** Calls `body` with the places of an element of x, of one of the weight and of a result, for each product of a sum. */
function forEachTerm(own: ConvolutionAttributes, body: (x: number, weight: number, y: number) => void): void {
  const [pixels, places, results] = [own.input, own.kernel, own.output].map(elementCount) as [number, number, number];
  const inside = insideOf(own);
  for (let group = 0; group < own.batch * own.groups; group++)
    for (let output = 0; output < own.outputs; output++)
      for (let channel = 0; channel < own.channels; channel++)
        for (let place = 0; place < places; place++)
          for (let result = 0; result < results; result++) {
            const pixel = inside(result, place);
            if (pixel < 0) continue;
            const weight = (((group % own.groups) * own.outputs + output) * own.channels + channel) * places + place;
            body(
              (group * own.channels + channel) * pixels + pixel,
              weight,
              (group * own.outputs + output) * results + result,
            );
          }
}

/** The place in x that a result reads under a place of the kernel, or -1 outside. */
function insideOf({ input, output, kernel, stride, dilation, before }: ConvolutionAttributes) {
  return (result: number, place: number): number => {
    let [pixel, size] = [0, 1];
    for (let axis = AXES - 1; axis >= 0; axis--) {
      const at = (result % output[axis]!) * stride[axis]! + (place % kernel[axis]!) * dilation[axis]! - before[axis]!;
      if (at < 0 || at >= input[axis]!) return -1;
      pixel += at * size;
      size *= input[axis]!;
      result = Math.floor(result / output[axis]!);
      place = Math.floor(place / kernel[axis]!);
    }
    return pixel;
  };
}
