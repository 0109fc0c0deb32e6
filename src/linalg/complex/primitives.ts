/**
 * Primitives of complex linear algebra. Their operands are real tensors: [batch, m, 2 n] for complex matrices of m rows
 * and n columns, whose elements are pairs of numbers. The lowerings of this folder call them.
 */
import type { Implementation, MetalImplementation } from "../../backend/backend.ts";
import { type CpuCall, cpuCall } from "../../backend/cpu/call.ts";
import { dtype, type Field, flag, type ValuesOf, whole } from "../../backend/fields.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { choleskyMetal, luMetal, qrMetal, triangularMetal } from "./factors.metal.ts";
import { choleskyFields, luFields, qrFields, sizes, triangularFields } from "./fields.ts";

const elsewhere = { missing: "only cpu computes this of complex matrices" } as const;
const unsupported = { missing: "only cpu and metal compute with complex matrices" } as const;

/** Defines a primitive that runs on cpu, and on metal if it is implemented. Attributes are the fields of its call. */
function define<Fields extends Readonly<Record<string, Field<never>>>>(
  name: string,
  fields: Fields,
  operands: readonly string[],
  metal?: MetalImplementation<ValuesOf<Fields>>,
) {
  const call: CpuCall<{ readonly dtype: DType } & ValuesOf<Fields>> = cpuCall(name, { dtype, ...fields }, operands);
  const cpu: Implementation<ValuesOf<Fields>> = {
    run({ operation, inputs, outputs, attributes }) {
      call(operation, { dtype: (inputs[0] as Tensor).dtype, ...attributes }, [...inputs, ...outputs]);
    },
  };
  return definePrimitive<ValuesOf<Fields>>({
    name,
    family: "linalg",
    implementations: { metal: metal ?? elsewhere, cpu, reference: metal ? unsupported : elsewhere },
  });
}

/** L of A = L Lᴴ, from the lower triangle of A; info as of `cholesky`. */
export const complexCholesky = define("complexCholesky", choleskyFields, ["a", "factor", "info"], choleskyMetal);

/** A = P L U, pivots and info, as of `luFactor`. */
export const complexLu = define("complexLu", luFields, ["a", "lu", "pivots", "info"], luMetal);

/** X of A X = B for a triangle of A; `columns` is the number of columns of B. */
export const complexTriangular = define("complexTriangular", triangularFields, ["a", "b", "x"], triangularMetal);

/** The first `width` columns of Q, and R with a diagonal that is real and at least 0. */
export const complexQr = define("complexQr", qrFields, ["a", "q", "r"], qrMetal);

/** A Hermitian A = Q T Qᴴ with a real, tridiagonal T; info is the first row that is not finite, counted from 1. */
export const complexTridiagonal = define("complexTridiagonal", { batch: whole, size: whole, upper: flag }, [
  "a",
  "t",
  "q",
  "info",
]);

/**
 * A = Q B Pᴴ with at least as many rows as columns and a real, upper bidiagonal B. With a `width` of 0, Q and Pᴴ are
 * not computed.
 */
export const complexBidiagonal = define("complexBidiagonal", { ...sizes, width: whole }, ["a", "b", "q", "ph"]);

/**
 * Eigenvalues and eigenvectors of a real or complex matrix as pairs of numbers; info is 1 for an element that is not
 * finite, 2 if the iteration did not converge.
 */
export const complexEig = define("complexEig", { batch: whole, size: whole, complex: flag, vectors: flag }, [
  "a",
  "values",
  "info",
  "vectors",
]);
