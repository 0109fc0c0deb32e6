import type { Tensor } from "../../tensor/tensor.ts";
import { binary, type Operand } from "./binary.ts";
import type { BinaryName } from "./primitive.ts";

const question =
  (name: BinaryName) =>
  (a: Operand, b: Operand): Tensor<"bool"> =>
    binary(name, a, b) as Tensor<"bool">;

/**
 * Whether a = b for each pair of elements, broadcast, after promotion to a common dtype. NaN equals nothing.
 *
 * @example
 * eq(tensor([1, 2]), 2); // bool [false, true]
 *
 * @throws {ShapeError} where the shapes can't be broadcast together.
 */
export const eq = question("eq");
/**
 * Whether a ≠ b for each pair of elements; NaN differs from everything. @see {@link eq}
 *
 * @example
 * ne(tensor([1, 2]), 2); // bool [true, false]
 */
export const ne = question("ne");
/**
 * Whether a < b for each pair of elements; never where either is NaN. @see {@link eq}
 *
 * @example
 * lt(tensor([1, 2]), 2); // bool [true, false]
 */
export const lt = question("lt");
/**
 * Whether a ≤ b for each pair of elements; never where either is NaN. @see {@link eq}
 *
 * @example
 * le(tensor([1, 2]), 1); // bool [true, false]
 */
export const le = question("le");
/**
 * Whether a > b for each pair of elements; never where either is NaN. @see {@link eq}
 *
 * @example
 * gt(tensor([1, 2]), 1); // bool [false, true]
 */
export const gt = question("gt");
/**
 * Whether a ≥ b for each pair of elements; never where either is NaN. @see {@link eq}
 *
 * @example
 * ge(tensor([1, 2]), 2); // bool [false, true]
 */
export const ge = question("ge");
/**
 * Whether both of each pair of elements are not 0. @see {@link eq}
 *
 * @example
 * logicalAnd(tensor([0, 2]), tensor([1, 1])); // bool [false, true]
 */
export const logicalAnd = question("logicalAnd");
/**
 * Whether either of each pair of elements is not 0. @see {@link eq}
 *
 * @example
 * logicalOr(tensor([0, 2]), tensor([0, 0])); // bool [false, true]
 */
export const logicalOr = question("logicalOr");
/**
 * Whether one and only one of each pair of elements is not 0. @see {@link eq}
 *
 * @example
 * logicalXor(tensor([0, 2]), tensor([1, 1])); // bool [true, false]
 */
export const logicalXor = question("logicalXor");
