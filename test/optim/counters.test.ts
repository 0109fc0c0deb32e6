/**
 * The cost of a step on metal, as the software device counts it: launches, and bytes of parameters, gradients and
 * state.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { metalContext } from "../../src/backend/metal/context.ts";
import { withBackend, withStrict } from "../../src/backend/policy.ts";
import { optim, type Tensor, zeros } from "../../src/index.ts";
import { updateMetal } from "../../src/optim/update.metal.ts";
import { bytesOf, type FloatDType } from "../../src/tensor/dtype.ts";
import { make, type OptimizerName, tested } from "./run.ts";

/** Only the software device has counters. */
const isWatched = tested.includes("metal") && metalContext().isSoftware;
const watch = (isOn: boolean): void => {
  for (const setting of ["check", "count"]) metalContext().configure(setting, isOn);
};
afterAll(() => isWatched && watch(false));

/** Returns the dispatches of the second training step, when all states exist. */
function dispatchesOf(optimizer: optim.Optimizer<never>, parameters: readonly Tensor[], gradient: FloatDType) {
  return withStrict(true, () =>
    withBackend("metal", () => {
      for (const parameter of parameters) parameter.grad = zeros(parameter.shape, { dtype: gradient });
      optimizer.step();
      const context = metalContext();
      context.wait();
      watch(true);
      context.report({ clear: true });
      optimizer.step();
      context.wait();
      const { dispatches, findings } = context.report({ clear: true });
      expect(findings).toEqual([]);
      return dispatches;
    }),
  );
}

const parametersOf = (sizes: readonly number[], dtype: FloatDType): Tensor[] =>
  withBackend("metal", () => sizes.map((size) => zeros([size], { dtype, requiresGrad: true })));

describe.if(isWatched)("a step on metal takes few launches", () => {
  test("a step on metal has a launch for nine parameters, regardless of their sizes and groups", () => {
    const parameters = parametersOf(
      Array.from({ length: 50 }, (_, index) => 8 + index),
      "float32",
    );
    const groups = [{ parameters: parameters.slice(0, 20), weightDecay: 0 }, { parameters: parameters.slice(20) }];
    const dispatches = dispatchesOf(new optim.AdamW(groups) as never, parameters, "float32");
    expect(dispatches.map(({ label, count }) => [label, count])).toEqual([["update_float_float", 6]]);
  });

  test("a launch does not support ten parameters: such a call goes to another backend", () => {
    const reasonFor = (count: number) =>
      updateMetal.unsupported!({ inputs: [], attributes: { members: Array(count) } } as never);
    expect([1, 9, 10, 11].map(reasonFor)).toEqual([
      undefined,
      undefined,
      "the kernel updates at most 9 parameters at once",
      "the kernel updates at most 9 parameters at once",
    ]);
  });

  const rules: readonly (readonly [OptimizerName, object, number])[] = [
    ["AdamW", {}, 2],
    ["AdamW", { amsgrad: true }, 3],
    ["SGD", {}, 0],
    ["SGD", { momentum: 0.9 }, 1],
    ["Lion", {}, 1],
    ["Adagrad", {}, 1],
    ["RMSprop", { momentum: 0.9, centered: true }, 3],
  ];
  const cases = rules.flatMap(([name, options, planes]) =>
    (["float32", "float16", "bfloat16"] as const).flatMap((dtype) =>
      [false, true].map((masterWeights) => [name, { ...options, masterWeights }, dtype, planes] as const),
    ),
  );
  test.each(cases)("%s %j of %s reads and writes each byte once", (name, options, dtype, planes) => {
    const sizes = [1500, 700];
    const parameters = parametersOf(sizes, dtype);
    const dispatches = dispatchesOf(make(name, parameters, options) as never, parameters, "bfloat16");
    expect(dispatches.length).toBe(1);
    const hasMaster = options.masterWeights && dtype !== "float32";
    const elements = sizes.reduce((sum, size) => sum + size, 0);
    const state = 4 * (planes + (hasMaster ? 1 : 0));
    const { device_bytes_read, device_bytes_written } = dispatches[0].counters;
    expect(device_bytes_read).toBe(elements * (state + bytesOf("bfloat16") + (hasMaster ? 0 : bytesOf(dtype))));
    expect(device_bytes_written).toBe(elements * (state + bytesOf(dtype)));
  });
});
