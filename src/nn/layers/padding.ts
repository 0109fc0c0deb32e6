/** Padding as layers. */
import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { operand, parameters, required } from "../../core/parameters.ts";
import { type PerAxis, perAxis } from "../../ops/convolution/geometry.ts";
import { type PadMode, pad } from "../../ops/join/pad.ts";
import { aScalar, expectTensor } from "../../tensor/kinds.ts";
import type { Scalar } from "../../tensor/promotion.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { Module } from "./module.ts";
import { called, listed } from "./module_of.ts";

/** Modes by module: a private field would not pass through the types of derived classes. */
const modes = new WeakMap<Module, PadMode>();

/** @internal A layer that adds elements at both ends of the last axes; negative numbers crop. */
export abstract class Padding extends Module<[x: Tensor], Tensor> {
  /** How many before and after the last axis, then the one before it, and so on. */
  readonly padding: readonly number[];

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
    modes.set(this, mode);
  }

  override forward(x: Tensor): Tensor {
    expectTensor(this.constructor.name, "x", x);
    const axes = this.padding.length / 2;
    const mode = modes.get(this)!;
    if (mode !== "constant" && x.rank !== axes + 1 && x.rank !== axes + 2)
      throw new ShapeError(
        this.constructor.name,
        "wrongRank",
        `expected ${axes + 2} axes, or ${axes + 1} without a batch, got ${x.describe()}`,
      );
    return pad(x, this.padding, { mode });
  }

  /** @internal */
  override details(): string {
    return `[${this.padding.join(", ")}]`;
  }
}

/** The class of a padding of the last axes by a mode. */
function paddingOf(name: string, axes: number, mode: PadMode): new (padding: PerAxis) => Padding {
  const read = parameters(name, { padding: operand(perAxis) });
  class OfMode extends Padding {
    constructor(padding: PerAxis);
    constructor(...values: unknown[]) {
      super(axes, read(values).padding, mode);
    }
  }
  return called(name, OfMode);
}

/** @internal A padding with one value. */
export interface ConstantPadding extends Padding {
  readonly value: Scalar;
}

type ConstantPaddingClass = new (
  padding: PerAxis,
  ...value: [value: Scalar] | [options: { value: Scalar }]
) => ConstantPadding;

/** The class of a padding of the last axes with one value. */
function constantPaddingOf(name: string, axes: number): ConstantPaddingClass {
  const read = parameters(name, { padding: operand(perAxis), value: required(aScalar) });
  class OfValue extends Padding {
    readonly value: Scalar;

    constructor(padding: PerAxis, ...value: [value: Scalar] | [options: { value: Scalar }]);
    constructor(...values: unknown[]) {
      const { padding, value } = read(values);
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
  return called(name, OfValue);
}

/** Zeros at both ends of the last axis. See `pad`. */
export class ZeroPad1d extends paddingOf("ZeroPad1d", 1, "constant") {}

/** A value at both ends of the last axis. See `pad`. */
export class ConstantPad1d extends constantPaddingOf("ConstantPad1d", 1) {}

/** At both ends of the last axis what is behind the border. See `pad`. */
export class ReflectionPad1d extends paddingOf("ReflectionPad1d", 1, "reflect") {}

/** At both ends of the last axis the border itself. See `pad`. */
export class ReplicationPad1d extends paddingOf("ReplicationPad1d", 1, "replicate") {}

/** At both ends of the last axis the other end. See `pad`. */
export class CircularPad1d extends paddingOf("CircularPad1d", 1, "circular") {}

/** Zeros at both ends of the last two axes. See `pad`. */
export class ZeroPad2d extends paddingOf("ZeroPad2d", 2, "constant") {}

/** A value at both ends of the last two axes. See `pad`. */
export class ConstantPad2d extends constantPaddingOf("ConstantPad2d", 2) {}

/** At both ends of the last two axes what is behind the border. See `pad`. */
export class ReflectionPad2d extends paddingOf("ReflectionPad2d", 2, "reflect") {}

/** At both ends of the last two axes the border itself. See `pad`. */
export class ReplicationPad2d extends paddingOf("ReplicationPad2d", 2, "replicate") {}

/** At both ends of the last two axes the other end. See `pad`. */
export class CircularPad2d extends paddingOf("CircularPad2d", 2, "circular") {}

/** Zeros at both ends of the last three axes. See `pad`. */
export class ZeroPad3d extends paddingOf("ZeroPad3d", 3, "constant") {}

/** A value at both ends of the last three axes. See `pad`. */
export class ConstantPad3d extends constantPaddingOf("ConstantPad3d", 3) {}

/** At both ends of the last three axes what is behind the border. See `pad`. */
export class ReflectionPad3d extends paddingOf("ReflectionPad3d", 3, "reflect") {}

/** At both ends of the last three axes the border itself. See `pad`. */
export class ReplicationPad3d extends paddingOf("ReplicationPad3d", 3, "replicate") {}

/** At both ends of the last three axes the other end. See `pad`. */
export class CircularPad3d extends paddingOf("CircularPad3d", 3, "circular") {}
