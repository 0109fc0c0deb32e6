/** Elementwise functions of a reduction's element x and its result y, of which gradients are made. */
import { AutogradError } from "../../autograd/node.ts";
import { needsGradient, record } from "../../autograd/record.ts";
import type { Primitive } from "../../backend/backend.ts";
import { execute } from "../../backend/dispatch.ts";
import { broadcastShapes } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { mul, neg } from "../elementwise/arithmetic.ts";
import { sumTo } from "../view/expand.ts";
import type { SelectAttributes, SlopeAttributes, SlopeName } from "./names.ts";
import { selectCpu, slopeCpu } from "./slope.cpu.ts";
import { selectMetal, slopeMetal } from "./slope.metal.ts";
import { selectReference, slopeReference } from "./slope.reference.ts";

const slopePrimitive: Primitive<SlopeAttributes> = {
  name: "reductionSlope",
  implementations: { metal: slopeMetal, cpu: slopeCpu, reference: slopeReference },
};

const slopeOf = (x: Tensor, y: Tensor, name: SlopeName, parameter = 0): Tensor =>
  execute(slopePrimitive, [x, y], broadcastShapes(name, x.shape, y.shape), x.dtype, { name, parameter });

/** Steps: constant but where they jump, so they have no gradient of their own. */
export const ties = (x: Tensor, y: Tensor): Tensor => slopeOf(x, y, "tie");
export const signOf = (x: Tensor): Tensor => slopeOf(x, x, "sign");

/** x / y, and 0 where y is. */
export function dividedWhereNotZero(x: Tensor, y: Tensor): Tensor {
  const output = slopeOf(x, y, "quotient");
  const [own, other] = [x.shape, y.shape];
  record("reductionSlope", [x, y], [output], [x, y], ([gradient], [a, b], needs) => {
    const share = dividedWhereNotZero(gradient!, b!);
    return [
      needs[0] ? sumTo(share, own) : null,
      needs[1] ? sumTo(neg(mul(share, dividedWhereNotZero(a!, b!))), other) : null,
    ];
  });
  return output;
}

/** The gradient of the norm of order p, sign(x) |x|^(p−1) y^(1−p); 0 where x or y is. It has no gradient of its own yet. */
export function powerSlope(x: Tensor, y: Tensor, p: number): Tensor {
  if (needsGradient(x, y))
    throw new AutogradError(
      "norm",
      "notTwiceDifferentiable",
      `the gradient of a norm with p = ${p} can't be differentiated again; p of 1, 2 and ±Infinity can`,
    );
  return slopeOf(x, y, "power", p);
}

const selectPrimitive: Primitive<SelectAttributes> = {
  name: "selectAt",
  implementations: { metal: selectMetal, cpu: selectCpu, reference: selectReference },
};

/** x where an element's place along the axis is the index there, else 0; both have one shape. */
export function selectAt(x: Tensor, indices: Tensor, axis: number): Tensor {
  const output = execute(selectPrimitive, [x, indices], x.shape, x.dtype, { axis });
  record("selectAt", [x], [output], [indices], ([gradient], [saved]) => [selectAt(gradient!, saved!, axis)]);
  return output;
}
