import type { FloatDType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { tensor } from "../creation/tensor.ts";
import { add, mul, sub } from "../elementwise/binary.ts";
import { cat, stack } from "../join/cat.ts";
import { reshape } from "../view/reshape.ts";
import { narrow, slice } from "../view/slice.ts";
import { rotationOf } from "./frequencies.ts";
import { checkRope, type RopeOptions } from "./options.ts";

export type { LinearScaling, Llama3Scaling, RopeScaling, YarnScaling } from "./frequencies.ts";
export type { RopeOptions } from "./options.ts";

/**
 * Rotary position embedding: each pair (a, b) of a row's elements becomes (a·cos φ − b·sin φ, a·sin φ + b·cos φ), where φ is the row's
 * position times the pair's frequency. x is read through its strides; angles are exact to the last bits at any position.
 *
 * Source: J. Su et al., "RoFormer: enhanced transformer with rotary position embedding", 2021.
 *
 * @param x [..., seq, headDim]
 * @param options `offset` or `positions` of rows, `base`, `interleaved` pairs, `dim` where only part of a row turns, `scaling`
 *
 * @example
 * rope(tensor([[1, 0], [1, 0]])); // float32 [1, 0, 0.540302, 0.841471]
 * rope(queries, { offset: cached, base: 500_000, scaling: { type: "linear", factor: 4 } });
 *
 * @throws {ShapeError} for fewer than two axes, an odd `dim`, or positions that are neither [seq] nor [batch, seq].
 * @throws {DTypeError} for an x that is no float, or positions that are no int64 or int32. @throws {ArgumentError} for other wrong options.
 */
export function rope<D extends FloatDType>(x: Tensor<D>, options: RopeOptions = {}): Tensor<D> {
  checkRope(x, options);
  const { offset = 0, positions, base = 10_000, interleaved = false, dim = x.shape.at(-1)!, scaling } = options;
  const { frequencies, magnitude } = rotationOf(dim, base, scaling);
  const seq = x.shape.at(-2)!;
  const at = positions ? Array.from(positions.dataSync(), Number) : Array.from({ length: seq }, (_, row) => row);
  const lead = positions?.rank === 2 ? [positions.shape[0]!, ...new Array<number>(x.rank - 3).fill(1)] : [];
  const table = (of: (angle: number) => number) => {
    const values = at.flatMap((position) =>
      frequencies.map((frequency) => magnitude * of((position + offset) * frequency)),
    );
    return tensor(values, { dtype: x.dtype === "float64" ? "float64" : "float32", shape: [...lead, seq, dim / 2] });
  };
  const [cos, sin] = [table(Math.cos), table(Math.sin)];
  const head = narrow(x, -1, 0, dim);
  const [a, b] = interleaved
    ? [slice(head, { dim: -1, step: 2 }), slice(head, { dim: -1, start: 1, step: 2 })]
    : [narrow(head, -1, 0, dim / 2), narrow(head, -1, dim / 2, dim / 2)];
  const turned = [sub(mul(a, cos), mul(b, sin)), add(mul(a, sin), mul(b, cos))] as Tensor[];
  const rows = interleaved ? reshape(stack(turned, { dim: -1 }), head.shape) : cat(turned, { dim: -1 });
  return cat([toDType(rows, x.dtype), narrow(x, -1, dim, x.shape.at(-1)! - dim)], { dim: -1 }) as Tensor<D>;
}
