/** Checks the inputs of recurrent layers and cells. */
import { describeValue } from "../../../core/describe.ts";
import { ArgumentError, DTypeError, ShapeError } from "../../../core/errors.ts";
import { isArray, listOf, someNumber } from "../../../core/kinds.ts";
import { reading, unknownOption } from "../../../core/parameters.ts";
import { zeros } from "../../../ops/creation/full.ts";
import { tensor } from "../../../ops/creation/tensor.ts";
import { select } from "../../../ops/view/slice.ts";
import { aTensor } from "../../../tensor/kinds.ts";
import { type Shape, sameShape } from "../../../tensor/shape.ts";
import { Tensor } from "../../../tensor/tensor.ts";
import type { Extent } from "./sequence.ts";

/**
 * Checks the input of a recurrent layer. @throws {ArgumentError} `invalidOperand` @throws {ShapeError} `wrongShape`
 * @throws {DTypeError} `dtypesDiffer`
 */
export function checkInput(operation: string, x: unknown, ranks: readonly number[], width: number, like: Tensor): void {
  checkTensor(operation, "x", x, like);
  if (ranks.includes(x.rank) && x.shape.at(-1) === width) return;
  const expected = `${ranks.join(" or ")} axes, the last of size ${width}`;
  throw new ShapeError(operation, "wrongShape", `expected x to have ${expected}, got ${x.describe()}`);
}

/** Returns the given state after checking it, or zeros. @throws as {@link checkInput} */
export function stateOrZeros(operation: string, name: string, state: unknown, shape: Shape, like: Tensor): Tensor {
  if (state === undefined) return zeros(shape, { dtype: like.dtype });
  checkTensor(operation, name, state, like);
  if (sameShape(state.shape, shape)) return state;
  const message = `expected ${name} to have shape [${shape.join(", ")}], got ${state.describe()}`;
  throw new ShapeError(operation, "wrongShape", message);
}

function checkTensor(operation: string, name: string, value: unknown, like: Tensor): asserts value is Tensor {
  if (!Tensor.isTensor(value))
    throw new ArgumentError(
      operation,
      "invalidOperand",
      `expected ${name} to be a tensor, got ${describeValue(value)}`,
    );
  value.checkAlive(operation);
  if (value.dtype !== like.dtype)
    throw new DTypeError(
      operation,
      "dtypesDiffer",
      `expected ${name} to have the dtype of the weights, ${like.dtype}, got ${value.describe()}`,
    );
}

/**
 * Returns masks of the steps within each sequence's length; undefined if all sequences have all steps.
 * @throws {ArgumentError}
 */
export function extentOf(operation: string, given: unknown, steps: number, batch: number): Extent | undefined {
  const lengths = reading(operation, () => lengthsOf(operation, given, batch));
  const isLength = (length: number) => Number.isSafeInteger(length) && length >= 1 && length <= steps;
  if (lengths?.length !== batch || !lengths.every(isLength))
    throw new ArgumentError(
      operation,
      "invalidLengths",
      `expected lengths to be ${batch} whole numbers from 1 to ${steps}, got ${describeValue(given)}`,
    );
  const least = Math.min(...lengths);
  if (least === steps) return undefined;
  const goesOn = Array.from({ length: steps }, (_, step) => lengths.map((length) => [step < length]));
  const whole = tensor(goesOn);
  return { whole, steps: goesOn.map((_, step) => (step < least ? undefined : select(whole, 0, step))) };
}

/** Returns a copy of the lengths, from a list or a tensor; undefined for anything else. */
function lengthsOf(operation: string, given: unknown, batch: number): number[] | undefined {
  const tensor = Tensor.isTensor(given) ? aTensor.parse(given, operation, "lengths") : undefined;
  if (tensor === undefined) return numbers.parse(given, operation, "lengths");
  if (tensor.rank !== 1 || tensor.size !== batch) return undefined;
  return Array.from(tensor.dataSync(), Number);
}

const numbers = listOf(someNumber, "a list of numbers");

/** Optional inputs of a recurrent layer: states and lengths. */
interface Inputs {
  readonly hidden?: unknown;
  readonly cell?: unknown;
  readonly lengths?: unknown;
}

/** Checks the optional inputs of a layer. @throws {ArgumentError} `invalidOption`, `unknownOption` */
export const readInputs = (operation: string, given: unknown, hasCell: boolean): Inputs =>
  reading(operation, () => {
    if (given === undefined) return {};
    if (typeof given !== "object" || given === null || Tensor.isTensor(given) || isArray(given))
      throw new ArgumentError(
        operation,
        "invalidOption",
        `expected an object with hidden${hasCell ? ", cell" : ""} or lengths, got ${describeValue(given)}`,
      );
    const known = hasCell ? ["hidden", "cell", "lengths"] : ["hidden", "lengths"];
    for (const name of Object.keys(given)) if (!known.includes(name)) throw unknownOption(operation, name, known);
    return { ...given };
  });

/** Checks the size of a projection. @throws {ArgumentError} `invalidSize` */
export function checkProjection(projSize: number, hiddenSize: number): void {
  if (projSize < hiddenSize) return;
  throw new ArgumentError(
    "LSTM",
    "invalidSize",
    `expected projSize to be smaller than hiddenSize (${hiddenSize}), got ${projSize}`,
  );
}
