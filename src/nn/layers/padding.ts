/** Padding as layers. */
import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { operand, parameters, required } from "../../core/parameters.ts";
import { type PerAxis, perAxis } from "../../ops/convolution/geometry.ts";
import { type PadMode, pad } from "../../ops/join/pad.ts";
import { aScalar, expectTensor } from "../../tensor/kinds.ts";
import type { Scalar } from "../../tensor/promotion.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { Module } from "./module.ts";
import { listed } from "./with_options.ts";

/** A layer that adds elements at both ends of the last axes; negative numbers crop. */
abstract class Padding extends Module<[x: Tensor], Tensor> {
  /** How many before and after the last axis, then the one before it, and so on. */
  readonly padding: readonly number[];
  readonly #mode: PadMode;

  constructor(axes: number, padding: PerAxis, mode: PadMode) {
    super();
    const sides = typeof padding === "number" ? new Array<number>(2 * axes).fill(padding) : padding;
    const name = new.target.name;
    if (sides.length !== 2 * axes || !sides.every(Number.isSafeInteger))
      throw new ArgumentError(
        name,
        "invalidPadding",
        `expected padding to be a whole number, or ${2 * axes} of them, got ${listed({ padding })}`,
      );
    this.padding = Object.freeze([...sides]);
    this.#mode = mode;
  }

  override forward(x: Tensor): Tensor {
    expectTensor(this.constructor.name, "x", x);
    const axes = this.padding.length / 2;
    if (this.#mode !== "constant" && x.rank !== axes + 1 && x.rank !== axes + 2)
      throw new ShapeError(
        this.constructor.name,
        "wrongRank",
        `expected ${axes + 2} axes, or ${axes + 1} without a batch, got ${x.describe()}`,
      );
    return pad(x, this.padding, { mode: this.#mode });
  }

  /** @internal */
  override details(): string {
    return `[${this.padding.join(", ")}]`;
  }
}

const paddingParameters = (operation: string) => parameters(operation, { padding: operand(perAxis) });
const constantParameters = (operation: string) =>
  parameters(operation, { padding: operand(perAxis), value: required(aScalar) });

/** A padding with one value. */
abstract class ConstantPadding extends Padding {
  readonly value: Scalar;

  constructor(axes: number, padding: PerAxis, value: Scalar) {
    super(axes, padding, "constant");
    this.value = value;
  }

  override forward(x: Tensor): Tensor {
    return pad(x, this.padding, { value: this.value });
  }

  /** @internal */
  override details(): string {
    return `${super.details()}, value: ${this.value}`;
  }
}

/** Zeros at both ends of the last axis. See `pad`. */
export class ZeroPad1d extends Padding {
  constructor(padding: PerAxis);
  constructor(...values: unknown[]) {
    super(1, zero1dParameters(values).padding, "constant");
  }
}
const zero1dParameters = paddingParameters("ZeroPad1d");

/** A value at both ends of the last axis. See `pad`. */
export class ConstantPad1d extends ConstantPadding {
  constructor(padding: PerAxis, ...value: [value: Scalar] | [options: { value: Scalar }]);
  constructor(...values: unknown[]) {
    const { padding, value } = constant1dParameters(values);
    super(1, padding, value);
  }
}
const constant1dParameters = constantParameters("ConstantPad1d");

/** At both ends of the last axis what is behind the border. See `pad`. */
export class ReflectionPad1d extends Padding {
  constructor(padding: PerAxis);
  constructor(...values: unknown[]) {
    super(1, reflection1dParameters(values).padding, "reflect");
  }
}
const reflection1dParameters = paddingParameters("ReflectionPad1d");

/** At both ends of the last axis the border itself. See `pad`. */
export class ReplicationPad1d extends Padding {
  constructor(padding: PerAxis);
  constructor(...values: unknown[]) {
    super(1, replication1dParameters(values).padding, "replicate");
  }
}
const replication1dParameters = paddingParameters("ReplicationPad1d");

/** At both ends of the last axis the other end. See `pad`. */
export class CircularPad1d extends Padding {
  constructor(padding: PerAxis);
  constructor(...values: unknown[]) {
    super(1, circular1dParameters(values).padding, "circular");
  }
}
const circular1dParameters = paddingParameters("CircularPad1d");

/** Zeros at both ends of the last two axes. See `pad`. */
export class ZeroPad2d extends Padding {
  constructor(padding: PerAxis);
  constructor(...values: unknown[]) {
    super(2, zero2dParameters(values).padding, "constant");
  }
}
const zero2dParameters = paddingParameters("ZeroPad2d");

/** A value at both ends of the last two axes. See `pad`. */
export class ConstantPad2d extends ConstantPadding {
  constructor(padding: PerAxis, ...value: [value: Scalar] | [options: { value: Scalar }]);
  constructor(...values: unknown[]) {
    const { padding, value } = constant2dParameters(values);
    super(2, padding, value);
  }
}
const constant2dParameters = constantParameters("ConstantPad2d");

/** At both ends of the last two axes what is behind the border. See `pad`. */
export class ReflectionPad2d extends Padding {
  constructor(padding: PerAxis);
  constructor(...values: unknown[]) {
    super(2, reflection2dParameters(values).padding, "reflect");
  }
}
const reflection2dParameters = paddingParameters("ReflectionPad2d");

/** At both ends of the last two axes the border itself. See `pad`. */
export class ReplicationPad2d extends Padding {
  constructor(padding: PerAxis);
  constructor(...values: unknown[]) {
    super(2, replication2dParameters(values).padding, "replicate");
  }
}
const replication2dParameters = paddingParameters("ReplicationPad2d");

/** At both ends of the last two axes the other end. See `pad`. */
export class CircularPad2d extends Padding {
  constructor(padding: PerAxis);
  constructor(...values: unknown[]) {
    super(2, circular2dParameters(values).padding, "circular");
  }
}
const circular2dParameters = paddingParameters("CircularPad2d");

/** Zeros at both ends of the last three axes. See `pad`. */
export class ZeroPad3d extends Padding {
  constructor(padding: PerAxis);
  constructor(...values: unknown[]) {
    super(3, zero3dParameters(values).padding, "constant");
  }
}
const zero3dParameters = paddingParameters("ZeroPad3d");

/** A value at both ends of the last three axes. See `pad`. */
export class ConstantPad3d extends ConstantPadding {
  constructor(padding: PerAxis, ...value: [value: Scalar] | [options: { value: Scalar }]);
  constructor(...values: unknown[]) {
    const { padding, value } = constant3dParameters(values);
    super(3, padding, value);
  }
}
const constant3dParameters = constantParameters("ConstantPad3d");

/** At both ends of the last three axes what is behind the border. See `pad`. */
export class ReflectionPad3d extends Padding {
  constructor(padding: PerAxis);
  constructor(...values: unknown[]) {
    super(3, reflection3dParameters(values).padding, "reflect");
  }
}
const reflection3dParameters = paddingParameters("ReflectionPad3d");

/** At both ends of the last three axes the border itself. See `pad`. */
export class ReplicationPad3d extends Padding {
  constructor(padding: PerAxis);
  constructor(...values: unknown[]) {
    super(3, replication3dParameters(values).padding, "replicate");
  }
}
const replication3dParameters = paddingParameters("ReplicationPad3d");

/** At both ends of the last three axes the other end. See `pad`. */
export class CircularPad3d extends Padding {
  constructor(padding: PerAxis);
  constructor(...values: unknown[]) {
    super(3, circular3dParameters(values).padding, "circular");
  }
}
const circular3dParameters = paddingParameters("CircularPad3d");
