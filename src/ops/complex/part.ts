/** The parts and conjugates of complex numbers, with gradients. They use copies only, since casts depend on them. */
import { setConj } from "../../autograd/conjugate.ts";
import { record } from "../../autograd/record.ts";
import { empty } from "../../backend/allocation.ts";
import { executeInto } from "../../backend/dispatch.ts";
import { primitiveOf } from "../../backend/primitive.ts";
import { type ComplexDType, complexDType } from "../../tensor/dtype.ts";
import { isComplexTensor, type Part, plane } from "../../tensor/planes.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { copyPrimitive } from "../copy/copy.ts";
import { fillPrimitive } from "../creation/fill.ts";

/** Returns and records a view of one part. */
export function partOf(operation: string, x: Tensor, part: Part): Tensor {
  x.checkAlive(operation);
  const view = plane(x, part);
  record(operation, [x], [view], [], ([gradient]) => [fromPart(gradient, part)], "none");
  return view;
}

/** Returns complex numbers with the given real or imaginary part, whose other part is 0. */
export function fromPart(given: Tensor, part: Part): Tensor {
  const result = withPart("complex", given, part, (other) => executeInto(fillPrimitive, [], [other], { value: 0 }));
  record("complex", [given], [result], [], ([gradient]) => [partOf("real", gradient, part)], "none");
  return result;
}

/** Creates complex numbers from one of their parts, without recording it. */
function withPart(
  operation: string,
  given: Tensor,
  part: Part,
  fillOther: (other: Tensor) => void,
): Tensor<ComplexDType> {
  const result = empty(given.shape, complexDType(given.dtype), undefined, operation);
  using own = plane(result, part);
  using other = plane(result, part === 0 ? 1 : 0);
  executeInto(copyPrimitive, [given], [own], undefined);
  fillOther(other);
  return result;
}

/** Returns the conjugates of complex numbers, and records the gradient. Returns a real tensor unchanged. */
export function conjugate(x: Tensor): Tensor {
  if (!isComplexTensor(x)) return x;
  using re = plane(x, 0);
  using im = plane(x, 1);
  const result = withPart("conj", re, 0, (other) => executeInto(primitiveOf("neg"), [im], [other], undefined));
  record("conj", [x], [result], [], ([gradient]) => [conjugate(gradient)], "none");
  return result;
}

setConj(conjugate);
