import { record } from "../../autograd/record.ts";
import { checkElements, executeMany, underName } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { lastElement } from "../../core/collections.ts";
import { operand, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { rotationOf } from "./frequencies.ts";
import { checkRope, type RopeOptions, ropeOptions } from "./options.ts";
import type { RopeAttributes } from "./primitive.ts";
import { ropeCpu } from "./rope.cpu.ts";
import { ropeMetal } from "./rope.metal.ts";
import { ropeReference } from "./rope.reference.ts";
import { outputStrides } from "./rows.ts";
import { rotatedByTables } from "./tables.ts";

export type { FactorsScaling, LinearScaling, Llama3Scaling, RopeScaling, YarnScaling } from "./frequencies.ts";
export type { RopeOptions } from "./options.ts";

const ropePrimitive = definePrimitive<RopeAttributes>({
  name: "rope",
  family: "position",
  implementations: { metal: ropeMetal, cpu: ropeCpu, reference: ropeReference },
});

/**
 * Applies a rotary position embedding: each pair (a, b) of a row's elements becomes (a·cos φ − b·sin φ, a·sin φ + b·cos
 * φ), where φ is the row's position times the pair's frequency. x may be strided, and the result of a transposed view
 * is a transposed view. Angles are as accurate at large positions as at small ones.
 *
 * Source: J. Su et al., "RoFormer: enhanced transformer with rotary position embedding", 2021.
 *
 * @param x [..., seq, headDim]
 * @param options `offset` or `positions` of rows, `base`, `interleaved` pairs, `dim` if only part of a row rotates,
 * `scaling`; or tables `cos` and `sin`
 *
 * @example
 * rope(tensor([[1, 0], [1, 0]])); // float32 [1, 0, 0.540302, 0.841471]
 * rope(queries, { cos, sin }); // tables [seq, headDim / 2]
 * rope(queries, { offset: cached, base: 500_000, scaling: { type: "linear", factor: 4 } });
 *
 * @throws {ShapeError} for fewer than two axes, an odd `dim`, or positions or tables that are neither [seq] nor [batch,
 * seq].
 * @throws {DTypeError} for an x that is not floating-point, or positions that are not int64 or int32.
 * @throws {ArgumentError} for other invalid options.
 */
export function rope<D extends DType>(x: Tensor<D>, options?: RopeOptions): Tensor<D>;
export function rope(...values: unknown[]): Tensor {
  const { x, ...options } = ropeParameters(values);
  checkRope(x, options);
  checkElements("rope", [x], [x]);
  const { offset, positions, base, interleaved, dim = lastElement(x.shape), scaling } = options;
  const { cos, sin } = options;
  if (cos && sin) return underName("rope", () => tidy(() => rotatedByTables(x, { cos, sin }, { dim, interleaved })));
  return rotated(x, positions, { ...rotationOf(dim, base, scaling), interleaved, offset });
}
rope.method = "same" as const;
const ropeParameters = parameters("rope", { x: operand(aTensor), ...ropeOptions });

function rotated<D extends DType>(x: Tensor<D>, positions: Tensor | undefined, attributes: RopeAttributes): Tensor<D> {
  const given = positions ? [positions] : [];
  const spec = { shape: x.shape, dtype: x.dtype, strides: outputStrides(x) };
  const [output] = executeMany(ropePrimitive, [x, ...given], [spec], attributes);
  record("rope", [x], [output], given, ([gradient], [at]) => [rotated(gradient, at, inverse(attributes))]);
  return output;
}

const inverse = (attributes: RopeAttributes): RopeAttributes => ({
  ...attributes,
  frequencies: attributes.frequencies.map((frequency) => -frequency),
});
