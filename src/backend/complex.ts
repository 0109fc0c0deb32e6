/**
 * Complex numbers. No kernel computes with them: a call of a primitive with complex operands or results is replaced by
 * calls on the real and the imaginary parts, which are strided views of the same memory. So every backend supports
 * complex numbers, in complex64 on metal. The replacements are in src/ops/complex; a primitive without one rejects
 * complex numbers.
 */
import { DTypeError } from "../core/errors.ts";
import { isComplex } from "../tensor/dtype.ts";
import type { Tensor } from "../tensor/tensor.ts";
import type { OutputSpec } from "./allocation.ts";
import type { Primitive } from "./backend.ts";

/** A call with complex operands or results. */
export interface ComplexCall<Attributes = unknown> {
  /** The user's operation, for errors. */
  readonly operation: string;
  readonly primitive: Primitive<Attributes>;
  readonly inputs: readonly Tensor[];
  readonly specs: readonly OutputSpec[];
  readonly attributes: Attributes;
}

/** Computes a call by calls on the parts. */
export interface Lowering {
  /** Computes new results. */
  readonly compute: (call: ComplexCall) => Tensor[];
  /** Computes into existing tensors. Default: computes new results and copies them. */
  readonly into?: (call: ComplexCall, outputs: readonly Tensor[]) => void;
}

const lowerings = new Map<string, Lowering>();

/** Sets the lowering of a primitive. @throws {TypeError} if it has one. */
export function defineLowering(primitive: string, lowering: Lowering): void {
  if (lowerings.has(primitive)) throw new TypeError(`the lowering of ${primitive} is defined twice`);
  lowerings.set(primitive, lowering);
}

/** The names of the primitives that accept complex numbers. */
export const loweredPrimitives = (): readonly string[] => [...lowerings.keys()];

/** Whether a call has complex operands or results. */
export function involvesComplex(tensors: readonly Tensor[], specs: readonly OutputSpec[] = []): boolean {
  for (let at = 0; at < tensors.length; at++) if (isComplex(tensors[at].dtype)) return true;
  for (let at = 0; at < specs.length; at++) if (isComplex(specs[at].dtype)) return true;
  return false;
}

/** Returns the lowering of a call. @throws {DTypeError} `complex` if its primitive has none. */
export function loweringOf({ operation, primitive, inputs, specs }: ComplexCall): Lowering {
  const known = lowerings.get(primitive.name);
  if (known !== undefined) return known;
  const { dtype } = [...inputs, ...specs].find((operand) => isComplex(operand.dtype))!;
  throw new DTypeError(
    operation,
    "complex",
    `expected real numbers, got ${dtype}; compute with real(x), imag(x), abs(x) or viewAsReal(x)`,
  );
}
