/** The scan primitives and their gradients, which are scans too. */
import { record } from "../../autograd/record.ts";
import { execute } from "../../backend/dispatch.ts";
import { byName } from "../../backend/enumeration.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { tupleOf } from "../../core/tuples.ts";
import { hasGradients } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { mul } from "../elementwise/arithmetic.ts";
import { type ScanAttributes, type ScanName, scans } from "./primitive.ts";
import { scanCpu } from "./scan.cpu.ts";
import { scanMetal } from "./scan.metal.ts";
import { scanReference } from "./scan.reference.ts";

const primitives = byName(scans.names, (name) =>
  definePrimitive<ScanAttributes>({
    name,
    family: "scan",
    implementations: { metal: scanMetal(name), cpu: scanCpu(name), reference: scanReference(name) },
  }),
);

function scan(name: ScanName, inputs: readonly Tensor[], attributes: ScanAttributes): Tensor {
  const [x] = tupleOf(inputs, 1);
  return execute(primitives[name], inputs, x.shape, hasGradients(x.dtype) ? x.dtype : "int64", attributes);
}

const reversed = ({ axis, reverse }: ScanAttributes): ScanAttributes => ({ axis, reverse: !reverse });

/** @internal Computes out[k] = Σ x[j] over j ≤ k. */
export function runningSum(x: Tensor, along: ScanAttributes): Tensor {
  const output = scan("cumsum", [x], along);
  record("cumsum", [x], [output], [], ([gradient]) => [runningSum(gradient, reversed(along))]);
  return output;
}

/**
 * @internal Computes out[k] = Π x[j] over j ≤ k.
 *
 * With P[k] the product of the elements before k, ∂out[i]/∂x[k] = P[k] Π x[j] over k < j ≤ i. So the gradient is P[k]
 * s[k] with s[k] = g[k] + x[k+1] s[k+1]. This is correct for elements that are 0 and takes linear time.
 */
export function runningProduct(x: Tensor, along: ScanAttributes): Tensor {
  const output = scan("cumprod", [x], along);
  record("cumprod", [x], [output], [x], ([gradient], [saved]) => [
    mul(productBefore(saved, along), recurrence(gradient, saved, true, reversed(along))),
  ]);
  return output;
}

/**
 * @internal Computes out[k] = Π x[j] over j < k. Its gradient is the same as for {@link runningProduct}, with s[k] =
 * g[k+1] + x[k+1] s[k+1].
 */
export function productBefore(x: Tensor, along: ScanAttributes): Tensor {
  const output = scan("exclusiveCumprod", [x], along);
  record("exclusiveCumprod", [x], [output], [x], ([gradient], [saved]) => {
    const back = reversed(along);
    return [mul(productBefore(saved, along), shift(recurrence(gradient, saved, false, back), back))];
  });
  return output;
}

/** Computes out[k] = x[k − 1], with out[0] = 0. */
function shift(x: Tensor, along: ScanAttributes): Tensor {
  const output = scan("shift", [x], along);
  record("shift", [x], [output], [], ([gradient]) => [shift(gradient, reversed(along))]);
  return output;
}

/**
 * Computes h[k] = a[k] h[k−1] + x[k], or with `isShifted` h[k] = a[k−1] h[k−1] + x[k]. The gradient u of x is the
 * reversed recurrence of the other kind. The gradient of an a is u times the h that it was multiplied by.
 */
function recurrence(x: Tensor, a: Tensor, isShifted: boolean, along: ScanAttributes): Tensor {
  const output = scan(isShifted ? "shiftedRecurrence" : "recurrence", [x, a], along);
  record("recurrence", [x, a], [output], [a, output], ([gradient], [coefficients, h], needs) => {
    const back = reversed(along);
    const u = recurrence(gradient, coefficients, !isShifted, back);
    if (!needs[1]) return [u, null];
    return [u, isShifted ? mul(shift(u, back), h) : mul(u, shift(h, along))];
  });
  return output;
}
