import { toDType } from "../ops/copy/cast.ts";
import { copyInto } from "../ops/copy/copy.ts";
import { add, div, maximum, mul, sub } from "../ops/elementwise/binary.ts";
import { sign, sqrt } from "../ops/elementwise/unary.ts";
import type { Tensor } from "../tensor/tensor.ts";
import type { Coefficients, RuleName } from "./rules.ts";

/** A parameter and what a step changes it by. */
export interface ElementUpdate {
  readonly rule: RuleName;
  readonly coefficients: Coefficients;
  readonly parameter: Tensor;
  readonly gradient: Tensor;
  readonly state: Readonly<Record<string, Tensor>>;
}

/** Changes parameters and their state by their rules. */
export function updateElements(updates: readonly ElementUpdate[]): void {
  for (const update of updates) updateOne(update);
}

function updateOne({ rule, coefficients, parameter, gradient, state }: ElementUpdate): void {
  const { l2, shrink, stepSize, keep1, take1, keep2, take2, root, eps } = coefficients;
  const dtype = parameter.dtype === "float64" ? "float64" : "float32";
  const p: Tensor = state["master"] ?? toDType(parameter, dtype);
  const g: Tensor = add(mul(toDType(gradient, dtype), coefficients.sign), mul(p, l2));
  const blend = (x: Tensor, keep: number, y: Tensor, take: number): Tensor => add(mul(x, keep), mul(y, take));
  const change = (name: string, value: Tensor): Tensor => {
    copyInto(state[name]!, value);
    return value;
  };
  const directions: Readonly<Record<RuleName, () => Tensor>> = {
    sgd: () => g,
    sgdMomentum: () => change("momentum", blend(state["momentum"]!, keep1, g, take1)),
    sgdNesterov: () => add(g, mul(change("momentum", blend(state["momentum"]!, keep1, g, take1)), keep1)),
    adam: () => adam(change("secondMoment", blend(state["secondMoment"]!, keep2, mul(g, g), take2))),
    adamAmsgrad: () => {
      const v = change("secondMoment", blend(state["secondMoment"]!, keep2, mul(g, g), take2));
      return adam(change("maxSecondMoment", maximum(state["maxSecondMoment"]!, v)));
    },
    lion: () => {
      const d = sign(blend(state["momentum"]!, keep1, g, take1));
      change("momentum", blend(state["momentum"]!, keep2, g, take2));
      return d;
    },
  };
  const adam = (v: Tensor): Tensor =>
    div(change("firstMoment", blend(state["firstMoment"]!, keep1, g, take1)), add(mul(sqrt(v), root), eps));
  const next: Tensor = sub(p, add(mul(p, shrink), mul(directions[rule](), stepSize)));
  if (state["master"]) copyInto(state["master"], next);
  copyInto(parameter, next);
}
