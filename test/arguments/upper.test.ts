/**
 * For all arguments of functions above the operations (layers, optimizers, gradients, contexts, files, data), the call
 * returns a result or throws an `OrchardError`.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { OrchardError } from "../../src/core/errors.ts";
import { signatures } from "../../src/core/parameters.ts";
import * as orchard from "../../src/index.ts";
import * as operations from "../../src/ops/index.ts";
import { failureOf, untypedErrors } from "./each_place.ts";
import { calls, enterFolder, leaveFolder } from "./upper.ts";

beforeAll(enterFolder);
afterAll(leaveFolder);

describe("functions of the upper layers survive hostile arguments", () => {
  test.each(Object.entries(calls))(
    "%s answers hostile arguments with a result or a typed error",
    async (_operation, [call, values]) => {
      const right = await failureOf(() => call(...(values() as never[])));
      expect(right === undefined || right instanceof OrchardError).toBe(true);
      expect(await untypedErrors(call, values)).toEqual([]);
    },
  );
});

test("every function with options rejects an unknown option and suggests the nearest name", async () => {
  const refused: string[] = [];
  for (const [operation, [call, values]] of Object.entries(calls)) {
    const given = values();
    const options = given.at(-1);
    if (!signatures.has(operation) || typeof options !== "object" || options === null) continue;
    if (Object.getPrototypeOf(options) !== Object.prototype) continue;
    const [name] = Object.keys(options);
    if (name === undefined) continue;
    const misspelled = given.with(-1, { ...options, [`${name}x`]: 1 });
    expect(String(await failureOf(() => call(...(misspelled as never[]))))).toContain(`did you mean "${name}"?`);
    refused.push(operation);
  }
  expect(refused.length).toBeGreaterThan(30);
});

/**
 * Functions without arguments that a caller could get wrong, and classes that another entry of this list constructs.
 */
const exempt = new Set([
  "codepaths",
  "resetCodepaths",
  "formatCodepaths",
  "getBackend",
  "isStrict",
  "isGradEnabled",
  "overrides",
  "routes",
  "distributed.DataParallel", // constructed by a function
  "memory",
  "resetPeakMemory",
  "optim.constant",
  "metalContext",
  "Function",
  "FunctionContext",
  "nn.Module",
  "nn.LanguageModel",
  "optim.Optimizer", // base classes
  "distributions.Distribution",
  "distributions.Transform",
  // classes that only functions construct

  "data.HeldOutWindows",
  "data.TrainingWindows",
  "data.Progress",
  "data.TextStream",
  "data.WorkerDataset",
  "nn.TokenStream",
  "diffusion.Pipeline",
  "diffusion.Sampler",
  "diffusion.Scheduler",
  "Tensor",
  "QuantizedTensor",
  "PerTensorWeights",
  "SmoothWeights",
  "MetalKernel",
  "MetalContext",
  "DeviceBuffer",
  "metalKernel",
  "kernelOverride",
  "output", // test/backend/metal
]);

test("this file calls every public function that is not an operation", () => {
  const isCovered = (name: string): boolean => name in calls || (name.split(".").at(-1) ?? name) in calls;
  const isError = (value: unknown): boolean => typeof value === "function" && value.prototype instanceof Error;
  const left = Object.entries<unknown>(orchard).flatMap(([name, value]): [string, unknown][] =>
    typeof value === "function"
      ? [[name, value]]
      : Object.entries<unknown>(value as object as Record<string, unknown>).map(([own, inner]) => [
          `${name}.${own}`,
          inner,
        ]),
  );
  const missing = left.filter(
    ([name, value]) =>
      typeof value === "function" && !isError(value) && !(name in operations) && !isCovered(name) && !exempt.has(name),
  );
  expect(missing.map(([name]) => name)).toEqual([]);
});
