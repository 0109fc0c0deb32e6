/** Padding as layers. */
import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { operand, parameters, required } from "../../core/parameters.ts";
import { type PerAxis, perAxis } from "../../ops/convolution/geometry.ts";
import { type PadMode, pad } from "../../ops/join/pad.ts";
import type { FloatDType } from "../../tensor/dtype.ts";
import { aScalar, expectTensor } from "../../tensor/kinds.ts";
import type { Scalar } from "../../tensor/promotion.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { Module } from "./module.ts";
import { called, listed } from "./module_of.ts";

/** The mode of each module. Types of classes that a function returns cannot have private fields. */
const modes = new WeakMap<Module, PadMode>();

/** @internal A layer that pads the last axes at both ends; negative numbers crop. */
export abstract class Padding extends Module<[x: Tensor], Tensor> {
  /** Numbers of elements before and after the last axis, then the one before it, and so on. */
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

  override forward<D extends FloatDType>(x: Tensor<D>): Tensor<D>;
  override forward(x: Tensor): Tensor;
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

/** Makes a class that pads the last `axes` axes in a mode. */
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

/** @internal A layer that pads with a constant. */
export interface ConstantPadding extends Padding {
  readonly value: Scalar;
}

type ConstantPaddingClass = new (
  padding: PerAxis,
  ...value: [value: Scalar] | [options: { value: Scalar }]
) => ConstantPadding;

/** Makes a class that pads the last `axes` axes with a constant. */
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

    override forward<D extends FloatDType>(x: Tensor<D>): Tensor<D>;
    override forward(x: Tensor): Tensor;
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

/**
 * Pads the last axis with zeros at both ends. See `pad`.
 *
 * @example
 * new ZeroPad1d(1).forward(tensor([[1, 2, 3]])); // [[0, 1, 2, 3, 0]]
 */
export class ZeroPad1d extends paddingOf("ZeroPad1d", 1, "constant") {}

/**
 * Pads the last axis with a constant at both ends. See `pad`.
 *
 * @example
 * new ConstantPad1d(1, 9).forward(tensor([[1, 2, 3]])); // [[9, 1, 2, 3, 9]]
 */
export class ConstantPad1d extends constantPaddingOf("ConstantPad1d", 1) {}

/**
 * Pads the last axis with its reflection at both ends. See `pad`.
 *
 * @example
 * new ReflectionPad1d(1).forward(tensor([[1, 2, 3]])); // [[2, 1, 2, 3, 2]]
 */
export class ReflectionPad1d extends paddingOf("ReflectionPad1d", 1, "reflect") {}

/**
 * Pads the last axis by repeating its first and last element. See `pad`.
 *
 * @example
 * new ReplicationPad1d(1).forward(tensor([[1, 2, 3]])); // [[1, 1, 2, 3, 3]]
 */
export class ReplicationPad1d extends paddingOf("ReplicationPad1d", 1, "replicate") {}

/**
 * Pads the last axis circularly, with elements from its other end. See `pad`.
 *
 * @example
 * new CircularPad1d(1).forward(tensor([[1, 2, 3]])); // [[3, 1, 2, 3, 1]]
 */
export class CircularPad1d extends paddingOf("CircularPad1d", 1, "circular") {}

/**
 * Pads the last two axes with zeros at both ends. See `pad`.
 *
 * @example
 * new ZeroPad2d(1).forward(randn([2, 3, 4, 5])); // [2, 3, 6, 7]
 */
export class ZeroPad2d extends paddingOf("ZeroPad2d", 2, "constant") {}

/**
 * Pads the last two axes with a constant at both ends. See `pad`.
 *
 * @example
 * new ConstantPad2d(1, 9).forward(randn([2, 3, 4, 5])); // [2, 3, 6, 7]
 */
export class ConstantPad2d extends constantPaddingOf("ConstantPad2d", 2) {}

/**
 * Pads the last two axes with their reflection at both ends. See `pad`.
 *
 * @example
 * new ReflectionPad2d(1).forward(randn([2, 3, 4, 5])); // [2, 3, 6, 7]
 */
export class ReflectionPad2d extends paddingOf("ReflectionPad2d", 2, "reflect") {}

/**
 * Pads the last two axes by repeating their first and last elements. See `pad`.
 *
 * @example
 * new ReplicationPad2d(1).forward(randn([2, 3, 4, 5])); // [2, 3, 6, 7]
 */
export class ReplicationPad2d extends paddingOf("ReplicationPad2d", 2, "replicate") {}

/**
 * Pads the last two axes circularly, with elements from their other ends. See `pad`.
 *
 * @example
 * new CircularPad2d(1).forward(randn([2, 3, 4, 5])); // [2, 3, 6, 7]
 */
export class CircularPad2d extends paddingOf("CircularPad2d", 2, "circular") {}

/**
 * Pads the last three axes with zeros at both ends. See `pad`.
 *
 * @example
 * new ZeroPad3d(1).forward(randn([2, 3, 4, 5, 6])); // [2, 3, 6, 7, 8]
 */
export class ZeroPad3d extends paddingOf("ZeroPad3d", 3, "constant") {}

/**
 * Pads the last three axes with a constant at both ends. See `pad`.
 *
 * @example
 * new ConstantPad3d(1, 9).forward(randn([2, 3, 4, 5, 6])); // [2, 3, 6, 7, 8]
 */
export class ConstantPad3d extends constantPaddingOf("ConstantPad3d", 3) {}

/**
 * Pads the last three axes with their reflection at both ends. See `pad`.
 *
 * @example
 * new ReflectionPad3d(1).forward(randn([2, 3, 4, 5, 6])); // [2, 3, 6, 7, 8]
 */
export class ReflectionPad3d extends paddingOf("ReflectionPad3d", 3, "reflect") {}

/**
 * Pads the last three axes by repeating their first and last elements. See `pad`.
 *
 * @example
 * new ReplicationPad3d(1).forward(randn([2, 3, 4, 5, 6])); // [2, 3, 6, 7, 8]
 */
export class ReplicationPad3d extends paddingOf("ReplicationPad3d", 3, "replicate") {}

/**
 * Pads the last three axes circularly, with elements from their other ends. See `pad`.
 *
 * @example
 * new CircularPad3d(1).forward(randn([2, 3, 4, 5, 6])); // [2, 3, 6, 7, 8]
 */
export class CircularPad3d extends paddingOf("CircularPad3d", 3, "circular") {}
