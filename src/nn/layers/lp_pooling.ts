/** Pooling by norms of windows as layers. */
import { flag, someNumber } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import { type PerAxis, perAxis } from "../../ops/convolution/geometry.ts";
import { type LpPoolOptions, lpPool1d, lpPool2d, lpPool3d } from "../../ops/pooling/lp_pool.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { Pooling } from "./pooling.ts";

/** A pooling by the norm of an order. */
abstract class NormPooling extends Pooling<LpPoolOptions> {
  readonly normType: number;

  constructor({ normType, kernelSize, ...options }: ReturnType<ReturnType<typeof lpPoolParameters>>) {
    super(kernelSize, options);
    this.normType = normType;
  }

  /** @internal */
  override details(): string {
    return `${this.normType}, ${super.details()}`;
  }
}

const lpPoolParameters = (operation: string) =>
  parameters(operation, {
    normType: operand(someNumber),
    kernelSize: operand(perAxis),
    stride: optional(perAxis),
    ceilMode: optional(flag, false),
  });

/** The norm of each window, of order `normType`: `lpPool1d`. */
export class LPPool1d extends NormPooling {
  constructor(normType: number, kernelSize: PerAxis, ...options: Given<LpPoolOptions, ["stride", "ceilMode"]>);
  constructor(...values: unknown[]) {
    super(lpPool1dParameters(values));
  }

  override forward(x: Tensor): Tensor {
    return lpPool1d(x, this.normType, this.size, this.options);
  }
}
const lpPool1dParameters = lpPoolParameters("LPPool1d");

/** The norm of each window, of order `normType`: `lpPool2d`. */
export class LPPool2d extends NormPooling {
  constructor(normType: number, kernelSize: PerAxis, ...options: Given<LpPoolOptions, ["stride", "ceilMode"]>);
  constructor(...values: unknown[]) {
    super(lpPool2dParameters(values));
  }

  override forward(x: Tensor): Tensor {
    return lpPool2d(x, this.normType, this.size, this.options);
  }
}
const lpPool2dParameters = lpPoolParameters("LPPool2d");

/** The norm of each window, of order `normType`: `lpPool3d`. */
export class LPPool3d extends NormPooling {
  constructor(normType: number, kernelSize: PerAxis, ...options: Given<LpPoolOptions, ["stride", "ceilMode"]>);
  constructor(...values: unknown[]) {
    super(lpPool3dParameters(values));
  }

  override forward(x: Tensor): Tensor {
    return lpPool3d(x, this.normType, this.size, this.options);
  }
}
const lpPool3dParameters = lpPoolParameters("LPPool3d");
