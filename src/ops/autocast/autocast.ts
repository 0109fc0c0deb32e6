import { autocastDType } from "../../autograd/modes.ts";
import { aFunction, choice, either, nothing } from "../../core/kinds.ts";
import { operand, parameters, rewriteArguments } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { type CastRule, castRules } from "./lists.ts";

/** The dtypes of {@link autocast}. */
export type AutocastDType = "float16" | "bfloat16";

/**
 * Runs `body` in mixed precision: matrix products, convolutions and attention compute in `dtype`, and losses, norms,
 * softmax and sums in float32. Operands are converted, and gradients have the dtypes of the operands: parameters remain
 * in float32. The lists of operations are PyTorch's. It stays in effect across the awaits of an asynchronous body.
 *
 * Call `backward` after it. Tensors of float64 and integers are not converted. With float16, scale the loss with
 * `optim.GradScaler`.
 *
 * @param dtype `null` disables it within another `autocast`
 *
 * @example
 * const loss = autocast("bfloat16", () => crossEntropy(model.forward(x), targets));
 * loss.backward();
 *
 * @throws {ArgumentError} for another dtype, or a body that is not a function.
 */
export function autocast<Result>(dtype: AutocastDType | null, body: () => Result): Result;
export function autocast(...values: unknown[]): unknown {
  const { dtype, body } = autocastParameters(values);
  rewriteArguments(castArguments);
  isInUse = true;
  return autocastDType.run(dtype, body);
}
const autocastParameters = parameters("autocast", {
  dtype: operand(either(choice("float16", "bfloat16"), nothing)),
  body: operand(aFunction<() => unknown>()),
});

let isInUse = false;

/** Returns the wider of two float dtypes; float32 for float16 and bfloat16, since neither holds the other. */
const isLow = (dtype: DType): boolean => dtype === "float16" || dtype === "bfloat16";
const isCast = (dtype: DType): boolean => isLow(dtype) || dtype === "float32";

/** Converts the tensors among the checked arguments of an operation, as its rule says. */
function castArguments(
  operation: string,
  parsed: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const low = autocastDType.get();
  if (low === null) return parsed;
  const rule = castRules.get(operation);
  if (rule === undefined) return parsed;
  const dtype = dtypeOf(rule, low, Object.values(parsed).flat().filter(Tensor.isTensor));
  return Object.fromEntries(Object.entries(parsed).map(([name, value]) => [name, cast(value, dtype)]));
}

function dtypeOf(rule: CastRule, low: AutocastDType, operands: readonly Tensor[]): DType {
  if (rule === "lower") return low;
  if (rule === "full") return "float32";
  const dtypes = new Set(operands.map(({ dtype }) => dtype).filter(isCast));
  return dtypes.size === 1 ? [...dtypes][0] : "float32";
}

function cast(value: unknown, dtype: DType): unknown {
  if (Tensor.isTensor(value)) return isCast(value.dtype) ? toDType(value, dtype) : value;
  return Array.isArray(value) && value.some(Tensor.isTensor) ? value.map((item) => cast(item, dtype)) : value;
}

/** @internal Returns the dtype in which an elementwise operation computes operands of a dtype. */
export function elementwiseDType(operation: string, dtype: DType): DType {
  if (!isInUse || !isLow(dtype) || autocastDType.get() === null) return dtype;
  return castRules.get(operation) === "full" ? "float32" : dtype;
}

/** @internal Runs the body of an operation whose operands are converted. */
export const inOperandDType = <Result>(body: () => Result): Result =>
  isInUse && autocastDType.get() !== null ? autocastDType.run(null, body) : body();

/** @internal Converts the tensors of an object, such as weights, to the lower dtype. */
export function lowered<T extends object>(tensors: T): T {
  const dtype = isInUse ? autocastDType.get() : null;
  if (dtype === null) return tensors;
  return Object.fromEntries(Object.entries(tensors).map(([name, value]) => [name, cast(value, dtype)])) as T;
}
