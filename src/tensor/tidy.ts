import { checkBody } from "../core/body.ts";
import { ContextVariable, isPromise } from "../core/context.ts";
import { describeValue } from "../core/describe.ts";
import { ArgumentError } from "../core/errors.ts";
import { expectNothing } from "../core/parameters.ts";
import type { Tensor } from "./tensor.ts";

const checkTidy = checkBody("tidy");

/** Collects the tensors that are created while it is open. */
export class TidyScope {
  private made: Tensor[] = [];

  add(tensor: Tensor): void {
    this.made.push(tensor);
  }

  /** Disposes of the collected tensors except kept ones, which move to the enclosing scope. Returns the kept ones. */
  close(kept: ReadonlySet<Tensor> | Tensor, around: TidyScope | null): Tensor[] {
    const staying: Tensor[] = [];
    const { made } = this;
    for (let at = 0; at < made.length; at++) {
      const tensor = made[at];
      if (kept === tensor || (kept instanceof Set && kept.has(tensor))) staying.push(tensor);
      else if (!tensor.isKept && !isParameter(tensor)) tensor.dispose();
    }
    if (around !== null) for (let at = 0; at < staying.length; at++) around.add(staying[at]);
    this.made = [];
    return staying;
  }
}

/** @internal The scope that owns new tensors. */
export const tidyScope = new ContextVariable<TidyScope | null>(null);

/**
 * Runs `body` and frees the memory of every tensor created in it, except returned ones (alone or inside arrays and
 * plain objects), gradients, and tensors that require a gradient. It is optional, since unreachable tensors are garbage
 * collected, but it bounds peak memory in a tight loop. Memory that a backward pass needs is freed after that pass.
 *
 * @example
 * const loss = tidy(() => square(sub(predict(x), y)).mean());
 * const data = await tidy(async () => (await model(x)).data());
 */
export function tidy<Result>(body: () => Result): Result;
export function tidy<Result>(body: () => Result, ...others: unknown[]): Result {
  checkTidy(body, others);
  const scope = new TidyScope();
  const around = tidyScope.get();
  const close = (result: unknown) => void scope.close(isTensorObject(result) ? result : tensorsIn(result), around);
  let result: Result;
  try {
    result = tidyScope.run(scope, body);
  } catch (error) {
    close(undefined);
    throw error;
  }
  if (!isPromise(result)) {
    close(result);
    return result;
  }
  return result.then(
    (value) => {
      close(value);
      return value;
    },
    (error: unknown) => {
      close(undefined);
      throw error;
    },
  ) as Result;
}

const isParameter = ({ isLeaf, requiresGrad }: Tensor): boolean => isLeaf && requiresGrad;

/**
 * Marks a tensor so that `tidy` does not dispose of it, and returns it.
 *
 * @example
 * let last: Tensor | undefined;
 * tidy(() => (last = keep(predict(x))).sum());
 *
 * @throws {ArgumentError} for anything but a tensor.
 */
export function keep<T extends Tensor>(tensor: T): T;
export function keep<T extends Tensor>(tensor: T, ...others: unknown[]): T {
  expectNothing("keep", others);
  if (!isTensorValue(tensor))
    throw new ArgumentError("keep", "invalidOperand", `expected a tensor, got ${describeValue(tensor)}`);
  tensor.isKept = true;
  return tensor;
}

function tensorsIn(value: unknown, found: Set<Tensor> = new Set(), seen: Set<unknown> = new Set()): Set<Tensor> {
  if (typeof value !== "object" || value === null || seen.has(value)) return found;
  seen.add(value);
  if (isTensorLike(value)) found.add(value);
  else if (Array.isArray(value) || value instanceof Set) for (const item of value) tensorsIn(item, found, seen);
  else if (value instanceof Map) for (const item of value.values()) tensorsIn(item, found, seen);
  else if (Object.getPrototypeOf(value) === Object.prototype) {
    for (const item of Object.values(value)) tensorsIn(item, found, seen);
  }
  return found;
}

/** Whether a value is a tensor. Never throws. */
function isTensorValue(value: unknown): boolean {
  try {
    return typeof value === "object" && value !== null && isTensorLike(value) && typeof value.isKept === "boolean";
  } catch {
    return false; // a proxy, or an object that only has a tensor's prototype
  }
}

const isTensorObject = (value: unknown): value is Tensor =>
  typeof value === "object" && value !== null && isTensorLike(value);

const isTensorLike = (value: object): value is Tensor => "storage" in value && "dispose" in value && "strides" in value;
