import { describeValue } from "../core/describe.ts";
import { ArgumentError } from "../core/errors.ts";
import { anObject, instanceOf } from "../core/kinds.ts";
import { operand, parameters, reading } from "../core/parameters.ts";
import { Module } from "../nn/layers/module.ts";
import { checkDepth, joinPath, type Slot, slotsOf } from "../nn/layers/slots.ts";
import { formatShape, sameShape } from "../tensor/shape.ts";
import { Tensor } from "../tensor/tensor.ts";

/**
 * Calls a module with the given parameters and buffers instead of its current ones: PyTorch's
 * `torch.func.functional_call`. It makes a module a function of its parameters, for {@link grad}, {@link jvp} or {@link
 * vmap}.
 *
 * @param module its state is restored when the call returns or throws
 * @param state tensors by name, as in `namedParameters()`, as an object or a map; the others stay. Tied tensors have
 * any of their names
 * @param values the arguments of the module's `forward`
 *
 * @example
 * const model = new nn.Linear(2, 1);
 * const loss = (weights) => transforms.functionalCall(model, weights, ones([3, 2])).sum();
 * transforms.grad(loss)({ weight: zeros([1, 2]) }); // { weight: float32 [[3, 3]] }
 *
 * @throws {ArgumentError} for a name that the module does not have, or a tensor of another shape.
 */
export function functionalCall<Arguments extends readonly unknown[], Result>(
  module: Module<Arguments, Result>,
  state: Readonly<Record<string, Tensor>> | ReadonlyMap<string, Tensor>,
  ...values: Arguments
): Result;
export function functionalCall(...values: unknown[]): unknown {
  const { module, state } = functionalCallParameters(values.slice(0, 2));
  const replaced = new Map<Tensor, Tensor>();
  const places = [...tensorSlots(module)];
  const given = reading("functionalCall", () => (state instanceof Map ? [...state] : Object.entries(state)));
  for (const [name, tensor] of given) {
    const place = places.find((slot) => slot.name === name);
    if (!place)
      throw new ArgumentError("functionalCall", "unknownName", `the module has no parameter or buffer ${name}`);
    checkReplacement(name, tensor, place.value);
    replaced.set(place.value, tensor);
  }
  const changed = places.filter(({ value }) => replaced.has(value));
  for (const place of changed) place.replace(replaced.get(place.value)!);
  const putBack = (): void => {
    for (const place of changed) place.replace(place.value);
  };
  return finallyRun(() => module.forward(...(values.slice(2) as never[])), putBack);
}
const functionalCallParameters = parameters("functionalCall", {
  module: operand(instanceOf(Module, "a module")),
  state: operand(anObject<Record<string, Tensor> | ReadonlyMap<string, Tensor>>("tensors by name")),
});

function checkReplacement(name: string, tensor: unknown, old: Tensor): void {
  if (!Tensor.isTensor(tensor))
    throw new ArgumentError(
      "functionalCall",
      "invalidOperand",
      `expected ${name} to be a tensor, got ${describeValue(tensor)}`,
    );
  tensor.checkAlive("functionalCall");
  if (!sameShape(tensor.shape, old.shape))
    throw new ArgumentError(
      "functionalCall",
      "shapesDiffer",
      `expected ${name} to have the shape ${formatShape(old.shape)}, got ${formatShape(tensor.shape)}`,
    );
}

/** The tensors of a module and its submodules, under all their names. */
function* tensorSlots(module: Module, name = "", depth = 0): Generator<Slot<Tensor>> {
  checkDepth(depth);
  for (const slot of slotsOf(module)) {
    const path = joinPath(name, slot.name);
    if (slot.value instanceof Module) yield* tensorSlots(slot.value, path, depth + 1);
    else if (Tensor.isTensor(slot.value))
      yield { name: path, value: slot.value, replace: (value) => slot.replace(value) };
  }
}

function finallyRun<Result>(body: () => Result, end: () => void): Result {
  let result: Result;
  try {
    result = body();
  } catch (error) {
    end();
    throw error;
  }
  if (!(result instanceof Promise)) {
    end();
    return result;
  }
  return result.finally(end) as Result;
}
