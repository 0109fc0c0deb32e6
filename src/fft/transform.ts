/** Transforms of pairs of real and imaginary parts, and their gradients, which are transforms too. */

import { noGrad } from "../autograd/modes.ts";
import { record } from "../autograd/record.ts";
import { execute, firstBackendOf } from "../backend/dispatch.ts";
import { onlyCpuFuses } from "../backend/missing.ts";
import { definePrimitive } from "../backend/primitive.ts";
import { lastElement } from "../core/collections.ts";
import { contiguous } from "../ops/copy/copy.ts";
import { tensor } from "../ops/creation/tensor.ts";
import { mul } from "../ops/elementwise/arithmetic.ts";
import { select } from "../ops/view/slice.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { chirpTable, radicesOf } from "./lengths.metal.ts";
import type { AxesTransform, ComplexTransform, Direction, RealTransform } from "./primitive.ts";
import { axesCpu, complexCpu, realCpu } from "./transform.cpu.ts";
import { complexMetal, realMetal } from "./transform.metal.ts";
import { complexReference, realReference } from "./transform.reference.ts";

const complexPrimitive = definePrimitive<ComplexTransform>({
  name: "fft",
  family: "fft",
  implementations: { metal: complexMetal, cpu: complexCpu, reference: complexReference },
});

const realPrimitive = definePrimitive<RealTransform>({
  name: "realFft",
  family: "fft",
  implementations: { metal: realMetal, cpu: realCpu, reference: realReference },
});

const axesPrimitive = definePrimitive<AxesTransform>({
  name: "fftAxes",
  family: "fft",
  implementations: { metal: onlyCpuFuses, cpu: axesCpu, reference: onlyCpuFuses },
});

const dense = (x: Tensor): Tensor => (x.isContiguous ? x : noGrad(() => contiguous(x)));

/** Returns the inputs of a primitive: on metal, lengths with large prime factors need the table of a chirp. */
function inputsOf(x: Tensor, length: number): Tensor[] {
  const needsTable = firstBackendOf(complexPrimitive) === "metal" && length > 1 && radicesOf(length).length === 0;
  return needsTable ? [dense(x), tensor(chirpTable(length))] : [dense(x)];
}

/**
 * Transforms complex numbers along an axis.
 *
 * The gradient of X = F x is the conjugated transform of X̄, since F is symmetric.
 *
 * @param x [..., 2], float32 or float64
 */
export function transformPairs(operation: string, x: Tensor, attributes: ComplexTransform): Tensor {
  const output = execute(
    complexPrimitive,
    inputsOf(x, x.shape[attributes.axis]),
    x.shape,
    x.dtype,
    attributes,
    operation,
  );
  record(operation, [x], [output], [], ([gradient]) => [
    transformPairs(operation, gradient, { ...attributes, inverse: !attributes.inverse }),
  ]);
  return output;
}

/**
 * Transforms complex or real numbers along several axes in one call of the cpu backend.
 *
 * @param x [..., 2], or [...] if real; float32 or float64
 * @returns [..., 2]
 */
export function transformAxes(operation: string, x: Tensor, attributes: AxesTransform): Tensor {
  const { isReal, inverse } = attributes;
  const shape = isReal ? [...x.shape, 2] : x.shape;
  const output = execute(axesPrimitive, [dense(x)], shape, x.dtype, attributes, operation);
  record(operation, [x], [output], [], ([gradient]) => {
    const pairs = transformAxes(operation, gradient, { ...attributes, isReal: false, inverse: !inverse });
    return [isReal ? select(pairs, -1, 0) : pairs];
  });
  return output;
}

/**
 * Transforms real numbers along the last axis.
 *
 * With X[k] = Σ x[j] e^(-iθ), the gradient is Σ Re(X̄[k] e^(iθ)) over half of the spectrum. `spectrumToReal` counts
 * the elements between the first and the middle twice, so they are halved.
 *
 * @param x [..., n], float32 or float64
 * @returns [..., n / 2 + 1, 2]
 */
export function realToSpectrum(operation: string, x: Tensor, direction: Direction): Tensor {
  const length = lastElement(x.shape);
  const shape = [...x.shape.slice(0, -1), Math.floor(length / 2) + 1, 2];
  const attributes = { ...direction, length, toReal: false };
  const output = execute(realPrimitive, inputsOf(x, length), shape, x.dtype, attributes, operation);
  record(operation, [x], [output], [], ([gradient]) => [
    spectrumToReal(operation, mul(gradient, weights(x, length, 0.5)), { ...opposite(direction), length }),
  ]);
  return output;
}

/**
 * Computes the real numbers with the given first half of a spectrum. Imaginary parts of the first element, and of the
 * middle one of an even length, count as 0.
 *
 * @param x [..., length / 2 + 1, 2], float32 or float64
 * @returns [..., length]
 */
export function spectrumToReal(
  operation: string,
  x: Tensor,
  { length, ...direction }: Direction & { readonly length: number },
): Tensor {
  const attributes = { ...direction, length, toReal: true };
  const output = execute(
    realPrimitive,
    inputsOf(x, length),
    [...x.shape.slice(0, -2), length],
    x.dtype,
    attributes,
    operation,
  );
  record(operation, [x], [output], [], ([gradient]) => [
    mul(realToSpectrum(operation, gradient, opposite(direction)), weights(x, length, 2)),
  ]);
  return output;
}

const opposite = ({ inverse, scale }: Direction): Direction => ({ inverse: !inverse, scale });

/**
 * Returns a factor for each element of a half spectrum: 1 for elements that are their own conjugates, `paired` for the
 * others.
 */
function weights({ dtype }: Tensor, length: number, paired: number): Tensor {
  const isPaired = (k: number) => k > 0 && 2 * k !== length;
  const factors = Array.from({ length: Math.floor(length / 2) + 1 }, (_, k) => [isPaired(k) ? paired : 1]);
  return tensor(factors, { dtype });
}
