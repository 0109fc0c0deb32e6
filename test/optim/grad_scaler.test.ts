/** Loss scaling: PyTorch's rules, on every backend. */
import { describe, expect, test } from "bun:test";
import { optim, tensor } from "../../src/index.ts";
import { on, parameterOf, tested, valuesOf } from "./run.ts";

const { GradScaler, SGD } = optim;

describe.each(tested)("GradScaler on %s scales losses", (backend) => {
  test("GradScaler divides gradients in float32, because float16 gradients would underflow", () => {
    on(backend, () => {
      const w = parameterOf([1, 2], "float16");
      const scaler = new GradScaler({ initialScale: 2 ** 16 });
      const optimizer = new SGD([w], { lr: 2, masterWeights: true });
      const least = 2 ** -24; // the smallest float16: half of it would be 0
      w.grad = tensor([least * 2 ** 15, least * 2 ** 16], { dtype: "float16" });
      scaler.unscale(optimizer);
      expect(valuesOf(w.grad)).toEqual([least / 2, least]);
      expect(scaler.step(optimizer)).toBe(true);
      expect(valuesOf(optimizer.stateDict().tensors["0.master"])).toEqual([1 - least, 2 - 2 * least]);
    });
  });

  test.each([Infinity, Number.NaN])("GradScaler skips a step with %p, and backs off", (bad) => {
    on(backend, () => {
      const [a, b] = [parameterOf([1]), parameterOf([2])];
      const scaler = new GradScaler({ initialScale: 8 });
      const optimizer = new SGD([a, b], { lr: 0.5 });
      const loss = scaler.scale(a.add(b).sum());
      loss.backward();
      expect(valuesOf(a.grad!)).toEqual([8]);
      b.grad = tensor([bad]);
      expect(scaler.step(optimizer)).toBe(false);
      scaler.update();
      expect([valuesOf(a), valuesOf(b), scaler.currentScale]).toEqual([[1], [2], 4]);
      expect(optimizer.stateDict().steps).toEqual({ 0: 0, 1: 0 });
    });
  });
});

/** Steps, each with or without overflow, and the factor after each. */
function factors(scaler: optim.GradScaler, clean: readonly boolean[]): number[] {
  const w = parameterOf([0]);
  const optimizer = new SGD([w]);
  return clean.map((isClean) => {
    w.grad = tensor([isClean ? 1 : Infinity]);
    scaler.step(optimizer);
    scaler.update();
    return scaler.currentScale;
  });
}

describe("the factor of a GradScaler adapts", () => {
  const options = { initialScale: 16, growthFactor: 4, backoffFactor: 0.5, growthInterval: 3 };
  const clean = [true, true, true, true, false, true, true, false, true, true, true];
  // PyTorch's rule: the factor grows after three finite steps in a row, and each change restarts the count.
  const wanted = [16, 16, 64, 64, 32, 32, 32, 16, 16, 16, 64];

  test("the factor grows and backs off", () => {
    expect(factors(new GradScaler(options), clean)).toEqual(wanted);
  });

  test("the factor resumes from a saved state", () => {
    const first = new GradScaler(options);
    factors(first, clean.slice(0, 7));
    const second = new GradScaler();
    second.loadStateDict(JSON.parse(JSON.stringify(first.stateDict())) as optim.GradScalerState);
    expect(factors(second, clean.slice(7))).toEqual(wanted.slice(7));
  });

  test("methods of a GradScaler must be called in order", () => {
    const scaler = new GradScaler();
    const w = parameterOf([0]);
    const optimizer = new SGD([w]);
    scaler.unscale(optimizer);
    expect(() => scaler.unscale(optimizer)).toThrow(/already unscaled/);
    scaler.step(optimizer);
    expect(() => scaler.step(optimizer)).toThrow(/already stepped/);
    scaler.update();
    scaler.step(optimizer);
  });
});
