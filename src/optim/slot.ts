/** A parameter in an optimizer: its group, its step count and its state tensors. */
import { noGrad } from "../autograd/modes.ts";
import { toDType } from "../ops/copy/cast.ts";
import { full } from "../ops/creation/full.ts";
import { accumulationDType, isComplex } from "../tensor/dtype.ts";
import { realView } from "../tensor/planes.ts";
import type { Shape } from "../tensor/shape.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { keep } from "../tensor/tidy.ts";
import type { ParameterGroup } from "./groups.ts";

/** A parameter and its optimizer state. */
export interface Slot<Options> {
  readonly name: string;
  /** The tensor that was given, which has the gradient. */
  readonly owner: Tensor;
  /**
   * The tensor that steps update: the parameter, or for a complex parameter a view of its parts, […, 2]. State tensors
   * have its shape.
   */
  readonly parameter: Tensor;
  readonly group: ParameterGroup<Options>;
  /** The number of steps that updated the parameter. */
  steps: number;
  /**
   * State tensors by name, mostly in the parameter's shape: float32, or float64 for a float64 parameter. Empty before
   * the first step.
   */
  state: Record<string, Tensor>;
}

/** Returns a tensor in the form that steps use: the parts of a complex one, else the tensor itself. */
export const partsOf = (x: Tensor): Tensor => (isComplex(x.dtype) ? realView(x) : x);

/** A slot in a step, with its gradient. */
export interface Update<Options> {
  readonly slot: Slot<Options>;
  readonly gradient: Tensor;
}

/** Adds the name of the master weights to those of the state of a parameter that has master weights. */
export const withMaster = (names: readonly string[], isKept: boolean, { dtype }: Tensor): readonly string[] =>
  isKept && (dtype === "float16" || dtype === "bfloat16") ? [...names, "master"] : names;

/** Returns the dtype of a parameter's state. */
export const stateDType = ({ dtype }: Tensor) => accumulationDType(dtype);

/** The shape and initial value of a state tensor. */
interface Start {
  readonly shape: Shape;
  readonly value: number;
}

/**
 * Gives a slot the state tensors of these names: keeps existing ones, initializes new ones, and disposes of the rest.
 */
export function prepareState<Options>(
  slot: Slot<Options>,
  names: readonly string[],
  start: (name: string) => Start,
): void {
  const { parameter, state: old } = slot;
  if (Object.keys(old).join() === names.join()) return;
  slot.state = Object.fromEntries(
    names.map((name) => [name, old[name] ?? keep(initialState(name, parameter, start(name)))]),
  );
  for (const [name, tensor] of Object.entries(old)) if (!(name in slot.state)) tensor.dispose();
}

/** The initial state: a copy of the parameter for master weights, else a constant, mostly 0. */
const initialState = (name: string, parameter: Tensor, { shape, value }: Start): Tensor =>
  name === "master"
    ? noGrad(() => toDType(parameter, stateDType(parameter)))
    : full(shape, value, { dtype: stateDType(parameter) });
