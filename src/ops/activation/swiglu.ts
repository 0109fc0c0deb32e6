import { defineBinary } from "../elementwise/define.ts";
import { gated, logisticShare } from "../elementwise/gated.reference.ts";
import type { BinaryOperation } from "../elementwise/types.ts";
import { swigluGradient } from "./swiglu_gradient.ts";

/**
 * Computes silu(gate)·up for each pair of elements, with broadcasting: the hidden layer of a gated feed-forward
 * network. Operands are read through their strides, so two halves of one projection need no copy.
 *
 * Source: N. Shazeer, "GLU variants improve transformer", 2020.
 *
 * @example
 * swiglu(tensor([0, 1]), tensor([5, 2])); // float32 [0, 1.462117]
 * swiglu(...chunk(projection, 2, { dim: -1 }));
 *
 * @throws {ShapeError} if the shapes can't be broadcast together.
 */
export const swiglu: BinaryOperation = defineBinary("swiglu", {
  takes: "floats",
  saves: "operands",
  reference: { float: (gate, up) => gated(logisticShare, gate) * up },
  gradient: (g, gate, up) => swigluGradient(g, gate, up),
});
