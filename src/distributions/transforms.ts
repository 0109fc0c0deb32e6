/** Invertible functions for transforming distributions. */
import { lastElement } from "../core/collections.ts";
import { ShapeError } from "../core/errors.ts";
import { operand, parameters, required } from "../core/parameters.ts";
import {
  atanh,
  cat,
  cumprod,
  cumsum,
  diagEmbed,
  diagonal,
  logSigmoid,
  narrow,
  ones,
  sigmoid,
  softplus,
  tanh,
  tril,
} from "../ops/index.ts";
import { aTensor } from "../tensor/kinds.ts";
import type { Shape } from "../tensor/shape.ts";
import { Tensor } from "../tensor/tensor.ts";
import {
  abs,
  add,
  constant,
  div,
  exp,
  expandTo,
  log,
  log1p,
  mul,
  neg,
  pow,
  sign,
  sub,
  sumLast,
  type Value,
} from "./arithmetic.ts";
import { aParameter } from "./distribution.ts";

const readers = {
  forward: parameters("Transform.forward", { x: operand(aTensor) }),
  inverse: parameters("Transform.inverse", { y: operand(aTensor) }),
  logAbsDetJacobian: parameters("Transform.logAbsDetJacobian", { x: operand(aTensor), y: operand(aTensor) }),
};

/**
 * The base class of transforms of a `TransformedDistribution`: `y = forward(x)` and `x = inverse(y)`.
 *
 * @example
 * new distributions.ExpTransform().inverse(tensor([1, Math.E])); // float32 [0, 1]
 */
export abstract class Transform {
  /** The number of last axes that the transform computes together: 0 if it is elementwise. */
  readonly domainDims: number;

  /** @internal */
  constructor(
    domainDims = 0,
    readonly codomainDims = domainDims,
  ) {
    this.domainDims = domainDims;
  }

  /** 1 if an elementwise transform is increasing, −1 if it is decreasing; undefined for others. */
  get sign(): Value | undefined {
    return undefined;
  }

  /** Transforms a tensor. @throws {ShapeError} if it has too few axes. */
  forward(x: Tensor): Tensor;
  forward(...values: unknown[]): Tensor {
    return this.apply(this.checked("forward", readers.forward(values).x, this.domainDims));
  }
  /** Transforms a tensor back. @throws {ShapeError} if it has too few axes. */
  inverse(y: Tensor): Tensor;
  inverse(...values: unknown[]): Tensor {
    return this.revert(this.checked("inverse", readers.inverse(values).y, this.codomainDims));
  }
  /** Computes ln |dy/dx|, or ln |det dy/dx| without the last `domainDims` axes. */
  logAbsDetJacobian(x: Tensor, y: Tensor): Tensor;
  logAbsDetJacobian(...values: unknown[]): Tensor {
    const { x, y } = readers.logAbsDetJacobian(values);
    this.checked("logAbsDetJacobian", x, this.domainDims);
    return this.logDerivative(x, this.checked("logAbsDetJacobian", y, this.codomainDims));
  }

  /** @internal The shape of the result for an operand of this shape. */
  forwardShape(shape: Shape): Shape {
    return shape;
  }
  /** @internal */
  protected abstract apply(x: Tensor): Tensor;
  /** @internal */
  protected abstract revert(y: Tensor): Tensor;
  /** @internal */
  protected abstract logDerivative(x: Tensor, y: Tensor): Tensor;

  private checked(method: string, x: Tensor, axes: number): Tensor {
    if (x.rank >= axes) return x;
    const operation = `${this.constructor.name}.${method}`;
    throw new ShapeError(operation, "invalidShape", `expected at least ${axes} axes, got ${x.describe()}`);
  }
}

const [expParameters, sigmoidParameters, tanhParameters, stickParameters, choleskyParameters] = [
  "ExpTransform",
  "SigmoidTransform",
  "TanhTransform",
  "StickBreakingTransform",
  "LowerCholeskyTransform",
].map((name) => parameters(name, {}));

/**
 * The transform y = eˣ.
 *
 * @example
 * new distributions.ExpTransform().forward(tensor([0, 1])); // float32 [1, 2.718282]
 */
export class ExpTransform extends Transform {
  constructor();
  constructor(...values: unknown[]) {
    expParameters(values);
    super();
  }
  override get sign(): Value {
    return 1;
  }
  protected override apply(x: Tensor): Tensor {
    return exp(x);
  }
  protected override revert(y: Tensor): Tensor {
    return log(y);
  }
  protected override logDerivative(x: Tensor): Tensor {
    return x;
  }
}

/**
 * The transform y = sigmoid(x) = 1 / (1 + e⁻ˣ).
 *
 * @example
 * new distributions.SigmoidTransform().forward(tensor([0])); // float32 [0.5]
 */
export class SigmoidTransform extends Transform {
  constructor();
  constructor(...values: unknown[]) {
    sigmoidParameters(values);
    super();
  }
  override get sign(): Value {
    return 1;
  }
  protected override apply(x: Tensor): Tensor {
    return sigmoid(x);
  }
  protected override revert(y: Tensor): Tensor {
    return sub(log(y), log1p(neg(y)));
  }
  protected override logDerivative(x: Tensor): Tensor {
    return add(logSigmoid(x), logSigmoid(neg(x)));
  }
}

/**
 * The transform y = tanh(x).
 *
 * @example
 * new distributions.TanhTransform().forward(tensor([0, 1])); // float32 [0, 0.7615942]
 */
export class TanhTransform extends Transform {
  constructor();
  constructor(...values: unknown[]) {
    tanhParameters(values);
    super();
  }
  override get sign(): Value {
    return 1;
  }
  protected override apply(x: Tensor): Tensor {
    return tanh(x);
  }
  protected override revert(y: Tensor): Tensor {
    return atanh(y);
  }
  /** ln(1 − tanh² x) = 2 (ln 2 − x − softplus(−2x)), which does not cancel. */
  protected override logDerivative(x: Tensor): Tensor {
    return mul(sub(sub(Math.LN2, x), softplus(mul(x, -2))), 2);
  }
}

/** Parameters of {@link AffineTransform}. */
export interface AffineParameters {
  /** The offset. */
  loc: Value;
  /** The factor, not 0. */
  scale: Value;
}

const affineParameters = parameters("AffineTransform", { loc: required(aParameter), scale: required(aParameter) });

/**
 * The transform y = loc + scale · x. Tensors must not add axes to x.
 *
 * @example
 * new distributions.AffineTransform(1, 2).forward(tensor([0, 1])); // float32 [1, 3]
 */
export class AffineTransform extends Transform {
  readonly loc: Value;
  readonly scale: Value;

  constructor(...options: [loc: Value, scale: Value] | [parameters: AffineParameters]);
  constructor(...values: unknown[]) {
    const { loc, scale } = affineParameters(values);
    super();
    [this.loc, this.scale] = [loc, scale];
  }
  override get sign(): Value {
    return this.scale instanceof Tensor ? sign(this.scale) : Math.sign(this.scale);
  }
  protected override apply(x: Tensor): Tensor {
    return add(mul(x, this.scale), this.loc);
  }
  protected override revert(y: Tensor): Tensor {
    return div(sub(y, this.loc), this.scale);
  }
  protected override logDerivative(x: Tensor, y: Tensor): Tensor {
    if (!(this.scale instanceof Tensor)) return constant(Math.log(Math.abs(this.scale)), x);
    return expandTo(log(abs(this.scale)), y.shape);
  }
}

/** Parameters of {@link PowerTransform}. */
export interface PowerParameters {
  /** The exponent, not 0. */
  exponent: Value;
}

const powerParameters = parameters("PowerTransform", { exponent: required(aParameter) });

/**
 * The transform y = x^exponent, for x above 0.
 *
 * @example
 * new distributions.PowerTransform(2).forward(tensor([2, 3])); // float32 [4, 9]
 */
export class PowerTransform extends Transform {
  readonly exponent: Value;

  constructor(...options: [exponent: Value] | [parameters: PowerParameters]);
  constructor(...values: unknown[]) {
    const { exponent } = powerParameters(values);
    super();
    this.exponent = exponent;
  }
  override get sign(): Value {
    return this.exponent instanceof Tensor ? sign(this.exponent) : Math.sign(this.exponent);
  }
  protected override apply(x: Tensor): Tensor {
    return pow(x, this.exponent);
  }
  protected override revert(y: Tensor): Tensor {
    return pow(y, this.exponent instanceof Tensor ? div(1, this.exponent) : 1 / this.exponent);
  }
  protected override logDerivative(x: Tensor, y: Tensor): Tensor {
    return log(abs(div(mul(y, this.exponent), x)));
  }
}

/**
 * Maps n numbers to n + 1 positive numbers whose sum is 1, along the last axis. Element k takes the fraction sigmoid(xₖ
 * − ln(n − k)) of what the elements before it leave of 1.
 *
 * @example
 * new distributions.StickBreakingTransform().forward(tensor([0, 0])); // float32 [0.3333333, 0.3333333, 0.3333333]
 */
export class StickBreakingTransform extends Transform {
  constructor();
  constructor(...values: unknown[]) {
    stickParameters(values);
    super(1);
  }
  override forwardShape(shape: Shape): Shape {
    return [...shape.slice(0, -1), lastElement(shape) + 1];
  }
  protected override apply(x: Tensor): Tensor {
    const part = sigmoid(sub(x, this.offsets(x)));
    const one = ones([...x.shape.slice(0, -1), 1], { dtype: x.dtype });
    const rest = cumprod(sub(1, part), -1);
    return mul(cat([part, one], -1), cat([one, rest], -1));
  }
  protected override revert(y: Tensor): Tensor {
    const head = narrow(y, -1, 0, lastElement(y.shape) - 1);
    const rest = sub(1, cumsum(head, -1));
    return add(sub(log(head), log(rest)), this.offsets(head));
  }
  protected override logDerivative(x: Tensor, y: Tensor): Tensor {
    const shifted = sub(x, this.offsets(x));
    const head = narrow(y, -1, 0, lastElement(y.shape) - 1);
    return sumLast(add(neg(shifted), add(logSigmoid(shifted), log(head))));
  }

  /** ln(n − k) for the elements k = 0, 1, … of the last axis */
  private offsets(x: Tensor): Tensor {
    const count = lastElement(x.shape);
    return log(sub(count + 1, cumsum(ones([count], { dtype: x.dtype }), 0)));
  }
}

/**
 * Maps square matrices to lower triangular ones with a positive diagonal: the exponential of the diagonal.
 *
 * @example
 * new distributions.LowerCholeskyTransform().forward(tensor([[0, 5], [2, 0]])); // float32 [[1, 0], [2, 1]]
 */
export class LowerCholeskyTransform extends Transform {
  constructor();
  constructor(...values: unknown[]) {
    choleskyParameters(values);
    super(2);
  }
  protected override apply(x: Tensor): Tensor {
    return replaced(x, exp);
  }
  protected override revert(y: Tensor): Tensor {
    return replaced(y, log);
  }
  protected override logDerivative(x: Tensor): Tensor {
    return sumLast(diagonal(x, { dim1: -2, dim2: -1 }));
  }
}

/** Returns the part below the diagonal, with a function applied to the diagonal. */
const replaced = (x: Tensor, f: (x: Tensor) => Tensor): Tensor =>
  add(tril(x, { diagonal: -1 }), diagEmbed(f(diagonal(x, { dim1: -2, dim2: -1 }))));
