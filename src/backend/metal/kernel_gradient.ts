/** Gradients of kernels, computed by another kernel or a function of tensors. */
import { AutogradError, type BackwardRule, type ForwardRule } from "../../autograd/node.ts";
import { needsGradient, record } from "../../autograd/record.ts";
import { describeValue } from "../../core/describe.ts";
import { allocateHost } from "../../tensor/memory.ts";
import { sameShape } from "../../tensor/shape.ts";
import { Storage } from "../../tensor/storage.ts";
import { byteLengthOf, Tensor } from "../../tensor/tensor.ts";
import type { Applied, KernelHost } from "./kernel_apply.ts";

/** Computes gradients by argument name from the results' gradients, the arguments and the results; null: none. */
export type GradientsOf = (
  gradients: Readonly<Record<string, Tensor>>,
  values: Readonly<Record<string, unknown>>,
  results: Readonly<Record<string, Tensor>>,
) => unknown;

/** Records a call of a kernel on the tape if one of its tensors requires a gradient. */
export function recordKernel(
  { operation, declared: { saves } }: KernelHost,
  { backward, jvp }: { readonly backward: GradientsOf | undefined; readonly jvp: GradientsOf | undefined },
  { tensors, others, results }: Applied,
): void {
  if (!needsGradient(...tensors.values())) return;
  const isSaved = (name: string) => (backward ?? jvp) !== undefined && (saves === undefined || saves.includes(name));
  const operands = [...tensors].filter(([name]) => isSaved(name));
  const outputs = [...results].filter(([name]) => isSaved(name));
  const described = [...tensors].map(([name, { shape, dtype }]) => ({ name, shape, dtype }));
  const made = [...results].map(([name, { shape, dtype }]) => ({ name, shape, dtype }));

  const rule: BackwardRule = (gradients, saved, needs) => {
    if (backward === undefined)
      throw new AutogradError(
        operation,
        "noBackward",
        "the kernel has no gradient; give metalKernel() a backward, or for tangents a jvp rule",
      );
    const given = backward(
      Object.fromEntries(made.map((result, index) => [result.name, gradients[index] ?? zerosOf(result)])),
      { ...others, ...Object.fromEntries(operands.map(([name], index) => [name, saved[index]])) },
      Object.fromEntries(outputs.map(([name], index) => [name, saved[operands.length + index]])),
    );
    checkNames(operation, given, described);
    return described.map((operand, index) =>
      needs[index] ? gradientOf(operation, operand, given[operand.name]) : null,
    );
  };
  const forward: ForwardRule = (tangents, saved) => {
    const given = jvp!(
      Object.fromEntries(described.map((operand, index) => [operand.name, tangents[index] ?? zerosOf(operand)])),
      { ...others, ...Object.fromEntries(operands.map(([name], index) => [name, saved[index]])) },
      Object.fromEntries(outputs.map(([name], index) => [name, saved[operands.length + index]])),
    );
    checkNames(operation, given, made, "jvp");
    return made.map((result) => gradientOf(operation, result, given[result.name] ?? null, "jvp"));
  };
  const save = [...operands, ...outputs].map(([, tensor]) => tensor);
  record(operation, [...tensors.values()], [...results.values()], save, rule, undefined, jvp && forward);
}

type Described = Pick<Tensor, "shape" | "dtype"> & { readonly name: string };

/** Returns the gradient of an unused result: one zero, repeated. */
function zerosOf({ shape, dtype }: Described): Tensor {
  const zero = new Storage(allocateHost(byteLengthOf([], dtype)));
  return new Tensor(zero, dtype, shape, new Array<number>(shape.length).fill(0));
}

function checkNames(
  operation: string,
  given: unknown,
  operands: readonly Described[],
  rule: "backward" | "jvp" = "backward",
): asserts given is Readonly<Record<string, unknown>> {
  const names = operands.map(({ name }) => name);
  const many = rule === "jvp" ? "tangents" : "gradients";
  if (typeof given !== "object" || given === null || Tensor.isTensor(given))
    throw wrong(operation, `expected ${rule} to return ${many} by name, got ${describeValue(given)}`);
  const unknown = Object.keys(given).filter((name) => !names.includes(name));
  if (unknown.length === 0) return;
  throw wrong(operation, `${rule} returned ${many} of ${unknown.join(", ")}; the tensors are ${names.join(", ")}`);
}

function gradientOf(
  operation: string,
  { name, shape, dtype }: Described,
  gradient: unknown,
  rule: "backward" | "jvp" = "backward",
): Tensor | null {
  if (gradient === null) return null;
  const what = rule === "jvp" ? "tangent" : "gradient";
  const expected = `expected ${rule} to return ${dtype}[${shape.join(", ")}] or null as the ${what} of ${name}`;
  if (!Tensor.isTensor(gradient)) throw wrong(operation, `${expected}, got ${describeValue(gradient)}`);
  gradient.checkAlive(operation);
  if (gradient.dtype === dtype && sameShape(gradient.shape, shape)) return gradient;
  throw wrong(operation, `${expected}, got ${gradient.describe()}`);
}

const wrong = (operation: string, message: string): AutogradError =>
  new AutogradError(operation, "wrongGradient", message);
