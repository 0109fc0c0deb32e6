import { defineBinary } from "./define.ts";
import type { BinaryPredicate } from "./types.ts";

/**
 * Tests a = b for each pair of elements, with broadcasting, after promotion to a common dtype. NaN equals nothing.
 *
 * @example
 * eq(tensor([1, 2]), 2); // bool [false, true]
 *
 * @throws {ShapeError} if the shapes can't be broadcast together.
 */
export const eq: BinaryPredicate = defineBinary("eq", {
  takes: "everything",
  result: "bool",
  reference: { float: (a, b) => a === b, integer: (a, b) => a === b },
});

/**
 * Tests a ≠ b for each pair of elements; NaN differs from everything. @see {@link eq}
 *
 * @example
 * ne(tensor([1, 2]), 2); // bool [true, false]
 */
export const ne: BinaryPredicate = defineBinary("ne", {
  takes: "everything",
  result: "bool",
  reference: { float: (a, b) => a !== b, integer: (a, b) => a !== b },
});

/**
 * Tests a < b for each pair of elements; false if either is NaN. @see {@link eq}
 *
 * @example
 * lt(tensor([1, 2]), 2); // bool [true, false]
 */
export const lt: BinaryPredicate = defineBinary("lt", {
  takes: "everything",
  result: "bool",
  reference: { float: (a, b) => a < b, integer: (a, b) => a < b },
});

/**
 * Tests a ≤ b for each pair of elements; false if either is NaN. @see {@link eq}
 *
 * @example
 * le(tensor([1, 2]), 1); // bool [true, false]
 */
export const le: BinaryPredicate = defineBinary("le", {
  takes: "everything",
  result: "bool",
  reference: { float: (a, b) => a <= b, integer: (a, b) => a <= b },
});

/**
 * Tests a > b for each pair of elements; false if either is NaN. @see {@link eq}
 *
 * @example
 * gt(tensor([1, 2]), 1); // bool [false, true]
 */
export const gt: BinaryPredicate = defineBinary("gt", {
  takes: "everything",
  result: "bool",
  reference: { float: (a, b) => a > b, integer: (a, b) => a > b },
});

/**
 * Tests a ≥ b for each pair of elements; false if either is NaN. @see {@link eq}
 *
 * @example
 * ge(tensor([1, 2]), 2); // bool [false, true]
 */
export const ge: BinaryPredicate = defineBinary("ge", {
  takes: "everything",
  result: "bool",
  reference: { float: (a, b) => a >= b, integer: (a, b) => a >= b },
});
