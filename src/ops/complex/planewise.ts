/** Lowerings of primitives that move, add or select elements: they run on the real and on the imaginary parts. */
import { noGrad } from "../../autograd/modes.ts";
import { empty, type OutputSpec } from "../../backend/allocation.ts";
import { type ComplexCall, defineLowering } from "../../backend/complex.ts";
import { executeInto, executeMany } from "../../backend/dispatch.ts";
import { DTypeError } from "../../core/errors.ts";
import { type Complex, type ComplexDType, complexDType, isComplex, realDType } from "../../tensor/dtype.ts";
import { isComplexTensor, type Part, plane, realView } from "../../tensor/planes.ts";
import type { Scalar } from "../../tensor/promotion.ts";
import { MAX_RANK, type Shape, sameShape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { contiguous, copyPrimitive } from "../copy/copy.ts";
import { fillPrimitive } from "../creation/fill.ts";
import type { ScatterAttributes } from "../indexing/primitive.ts";

const parts = [0, 1] as const;

/** Runs `body` with views of one part of the complex tensors in a list. Real tensors are passed unchanged. */
export function withPlanes<Result>(tensors: readonly Tensor[], part: Part, body: (planes: Tensor[]) => Result): Result {
  const planes = tensors.map((tensor) => (isComplexTensor(tensor) ? plane(tensor, part) : tensor));
  try {
    return body(planes);
  } finally {
    for (const [at, view] of planes.entries()) if (view !== tensors[at]) view.dispose();
  }
}

/** Joins real and imaginary parts into a new complex tensor, and disposes of the parts. */
export function interleaved(re: Tensor, im: Tensor, operation: string): Tensor<ComplexDType> {
  const joined = joinedParts(re, im, operation);
  for (const part of [re, im]) part.dispose();
  return joined;
}

/** Joins real and imaginary parts, which have the same shape, into a new complex tensor. */
export function joinedParts(re: Tensor, im: Tensor, operation: string): Tensor<ComplexDType> {
  const joined = empty(re.shape, complexDType(re.dtype), undefined, operation);
  for (const part of parts)
    withPlanes([joined], part, (planes) => executeInto(copyPrimitive, [part === 0 ? re : im], planes, undefined));
  return joined;
}

/** Scatter modes that treat the real and the imaginary parts independently. */
const scatterings: ReadonlySet<string> = new Set(["sum", "last"]);

function checkScattering({ operation, primitive, attributes }: ComplexCall): void {
  if (primitive.name !== "scatter") return;
  const { way } = attributes as ScatterAttributes;
  if (!scatterings.has(way))
    throw new DTypeError(operation, "complex", `expected real numbers for the reduction ${way}, got complex ones`);
}

function computePlanewise(call: ComplexCall): Tensor[] {
  checkScattering(call);
  return computeParts(call);
}

/**
 * Runs the primitive on each part. Operands that are not complex, such as indices, go to both calls.
 *
 * @param prepare changes the operands of a part
 */
function computeParts(
  { operation, primitive, inputs, specs, attributes }: ComplexCall,
  prepare = (planes: Tensor[]): Tensor[] => planes,
): Tensor[] {
  const real: OutputSpec[] = specs.map(({ shape, dtype }) => ({ shape, dtype: realDType(dtype) }));
  const [re, im] = parts.map((part) =>
    withPlanes(inputs, part, (planes) => executeMany(primitive, prepare(planes), real, attributes, operation)),
  ) as [Tensor[], Tensor[]];
  return specs.map((_, at) => interleaved(re[at], im[at], operation));
}

/** The primitives that compute the real part from real parts and the imaginary part from imaginary parts. */
const planewise = [
  "add",
  "sub",
  "neg",
  "sum",
  "mean",
  "cumsum",
  "where",
  "gather",
  "scatter",
  "maskedSelect",
  "triangle",
  "fold",
  "selectAt",
];

/** Converts and copies. A real input becomes the real part. */
function copyComplex(input: Tensor, output: Tensor, operation: string): void {
  if (!isComplexTensor(output))
    throw new DTypeError(
      operation,
      "complex",
      `${input.describe()} can't become ${output.dtype}, which has no imaginary part; take real(x), imag(x) or abs(x)`,
    );
  if (isComplexTensor(input) && sameShape(input.shape, output.shape) && input.rank < MAX_RANK) {
    using from = realView(input);
    using to = realView(output);
    executeInto(copyPrimitive, [from], [to], undefined);
    return;
  }
  for (const part of parts)
    withPlanes([input, output], part, ([from, to]) => {
      if (part === 0 || isComplex(input.dtype)) executeInto(copyPrimitive, [from], [to], undefined);
      else executeInto(fillPrimitive, [], [to], { value: 0 });
    });
}

/** Returns the parts of a plain value. */
export const partsOf = (value: Scalar | Complex): readonly [Scalar, number] =>
  typeof value === "object" ? [value.re, value.im] : [value, 0];

function fillComplex(output: Tensor, value: Scalar | Complex): void {
  for (const part of parts)
    withPlanes([output], part, (planes) => executeInto(fillPrimitive, [], planes, { value: partsOf(value)[part] }));
}

const filled = (
  shape: Shape,
  dtype: OutputSpec["dtype"],
  operation: string,
  fill: (output: Tensor) => void,
): Tensor[] => {
  const output = empty(shape, dtype, undefined, operation);
  fill(output);
  return [output];
};

planewise.forEach((name) => {
  defineLowering(name, { compute: computePlanewise });
});

/** The source must be dense memory, and a part of complex numbers is not. */
defineLowering("maskedScatter", {
  compute: (call) =>
    computeParts(call, ([x, mask, source, ...rest]) => [x, mask, noGrad(() => contiguous(source)), ...rest]),
});

defineLowering("copy", {
  compute: ({ operation, inputs: [x], specs: [spec] }) =>
    filled(spec.shape, spec.dtype, operation, (output) => copyComplex(x, output, operation)),
  into: ({ operation, inputs: [x] }, [output]) => copyComplex(x, output, operation),
});

defineLowering("fill", {
  compute: ({ operation, specs: [spec], attributes }) =>
    filled(spec.shape, spec.dtype, operation, (output) => fillComplex(output, filling(attributes))),
  into: ({ attributes }, [output]) => fillComplex(output, filling(attributes)),
});

const filling = (attributes: unknown): Scalar | Complex => (attributes as { value: Scalar | Complex }).value;
