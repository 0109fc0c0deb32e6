/**
 * Calls every operation once with operands of each size, with its gradient, and the calls of bench/kernels.ts, on the
 * metal backend: a short program for NVIDIA's compute-sanitizer. Prints how many kernels the software device counted.
 */
import { withBackend } from "../../../src/backend/policy.ts";
import * as library from "../../../src/index.ts";
import { tidy } from "../../../src/tensor/tidy.ts";
import { calls, disposeLeaves, leafOf, makeOperands, type OperationName } from "../../../test/ops/calls.ts";
import { makeCases } from "../kernels/cases.ts";

const functions = library as unknown as Readonly<Record<string, (...values: readonly unknown[]) => unknown>>;
const [from = 0, step = 1] = (process.argv[2] ?? "0/1").split("/").map(Number);
const sizes = process.argv.slice(3).map(Number);

const tensorsIn = (value: unknown): library.Tensor[] => {
  if (value instanceof library.Tensor) return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(tensorsIn) : [];
};

function callWithGradient(name: OperationName, size: number): void {
  tidy(() => {
    const operands = makeOperands(size);
    functions[name](...calls[name](operands));
    const leaves = ["x", "y", "vector", "other", "batch"].map((each) => [each, leafOf(operands[each as "x"])]);
    const results = tensorsIn(functions[name](...calls[name]({ ...operands, ...Object.fromEntries(leaves) })));
    const differentiable = results.filter(({ requiresGrad }) => requiresGrad);
    for (const [at, result] of differentiable.entries())
      library.backward(result.sum(), undefined, { retainGraph: at + 1 < differentiable.length });
  });
  disposeLeaves();
}

const works: (() => unknown)[] = (sizes.length > 0 ? sizes : [24, 130]).flatMap((size) =>
  (Object.keys(calls) as OperationName[]).map((name) => () => callWithGradient(name, size)),
);
const context = library.metalContext();
if (context.isSoftware) context.configure("count", true);
let [done, refused] = [0, 0];
withBackend("metal", () => {
  for (const work of [...works, ...makeCases().map(({ run }) => run)].filter((_, at) => at % step === from)) {
    try {
      work();
      done++;
    } catch {
      refused++; // operations that reject these sizes or have no such gradient
    }
  }
  context.wait();
});
const kernels = new Set(context.report().dispatches.map(({ kernel }) => kernel));
console.log(
  `${done} calls, ${refused} refused, ${context.statistics().dispatches} dispatches, ${kernels.size} kernels`,
);
