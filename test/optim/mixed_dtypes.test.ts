/** Parameters of several dtypes in one list: functions on them keep each one's dtype, and compute accurately in it. */
import { describe, expect, test } from "bun:test";
import { nn, optim, type Tensor, tensor } from "../../src/index.ts";
import type { FloatDType } from "../../src/tensor/dtype.ts";
import { Random } from "../ops/samples.ts";
import { seed } from "../support/some.ts";
import { draw, on, parameterOf, tested, valuesOf } from "./run.ts";

/** The distance from 1 to the next number of a dtype. */
const epsilons: Readonly<Record<FloatDType, number>> = {
  float64: 2 ** -52,
  float32: 2 ** -23,
  float16: 2 ** -10,
  bfloat16: 2 ** -7,
};

/**
 * Within some roundings of each value: those of its dtype, or of the dtype in which a part of it was computed. Below
 * float16's normal numbers the spacing is coarser.
 */
function expectNear(got: Tensor, wanted: readonly number[], computed: FloatDType = "float64"): void {
  const epsilon = Math.max(epsilons[got.dtype as FloatDType], epsilons[computed]);
  const least = got.dtype === "float16" ? 2 ** -24 : 0;
  const bounds = wanted.map((value) => 4 * epsilon * Math.abs(value) + least);
  const far = valuesOf(got).filter((value, at) => !(Math.abs(value - wanted[at]) <= bounds[at]));
  expect([got.dtype, far]).toEqual([got.dtype, []]);
}

interface Drawn {
  readonly parameter: Tensor;
  readonly dtype: FloatDType;
  readonly start: readonly number[];
  readonly gradient: readonly number[];
}

/** A list of parameters with gradients: dtypes and sizes are drawn, so that neighbors differ. */
function drawn(random: Random, dtypes: readonly FloatDType[]): Drawn[] {
  return Array.from({ length: 9 }, () => {
    const dtype = dtypes[random.integer(0, dtypes.length - 1)];
    const size = random.integer(1, 40);
    const [start, gradient] = [1, 2].map(() => draw(size, random.integer(1, 1e6), dtype)) as [number[], number[]];
    const parameter = parameterOf(start, dtype);
    parameter.grad = tensor(Float64Array.from(gradient), { dtype });
    return { parameter, dtype, start, gradient };
  });
}

const parametersOf = (all: readonly Drawn[]): Tensor[] => all.map(({ parameter }) => parameter);

describe.each(tested)("optimizers and clipping with several dtypes on %s", (backend) => {
  const all: readonly FloatDType[] = ["float32", "float16", "bfloat16", "float64"];
  const dtypes = all.filter((dtype) => backend !== "metal" || dtype !== "float64");
  const lists = () => {
    const random = new Random(seed);
    return Array.from({ length: 5 }, () => drawn(random, dtypes));
  };

  test("clipGradNorm scales by the total norm, and keeps the dtype of each gradient", () => {
    on(backend, () => {
      for (const own of lists()) {
        const norm = Math.hypot(...own.flatMap(({ gradient }) => gradient));
        // The norm of gradients that are not float64 is computed in float32.
        expectNear(optim.clipGradNorm(parametersOf(own), norm / 3), [norm], "float32");
        for (const { parameter, dtype, gradient } of own) {
          expect(parameter.grad!.dtype).toBe(dtype);
          expectNear(
            parameter.grad!,
            gradient.map((value) => value * (norm / 3 / (norm + 1e-6))),
            "float32",
          );
        }
      }
    });
  });

  test("clipGradValue keeps the dtype of each gradient", () => {
    on(backend, () => {
      for (const own of lists()) {
        optim.clipGradValue(parametersOf(own), 0.5);
        for (const { parameter, dtype, gradient } of own) {
          expect(parameter.grad!.dtype).toBe(dtype);
          expect(valuesOf(parameter.grad!)).toEqual(gradient.map((value) => Math.min(Math.max(value, -0.5), 0.5)));
        }
      }
    });
  });

  test("averages are float32, or float64 for float64; withAverages shows each in its parameter's dtype", () => {
    on(backend, () => {
      for (const own of lists()) {
        const averages = new optim.AveragedWeights(parametersOf(own));
        averages.update();
        const optimizer = new optim.SGD(parametersOf(own), { lr: 1 });
        optimizer.step();
        averages.update();
        const tensors = Object.values(averages.stateDict().tensors);
        for (const [at, { parameter, dtype, start }] of own.entries()) {
          const mean = start.map((value, i) => (value + valuesOf(parameter)[i]) / 2);
          expect(tensors[at].dtype).toBe(dtype === "float64" ? "float64" : "float32");
          expectNear(tensors[at], mean);
        }
        averages.withAverages(() => {
          for (const { parameter, dtype } of own) expect(parameter.dtype).toBe(dtype);
        });
      }
    });
  });

  test("GradScaler divides each gradient in float32, or float64", () => {
    on(backend, () => {
      for (const own of lists()) {
        const scaler = new optim.GradScaler({ initialScale: 1024 });
        scaler.unscale(new optim.SGD(parametersOf(own), { lr: 1 }));
        for (const { parameter, dtype, gradient } of own) {
          expect(parameter.grad!.dtype).toBe(dtype === "float64" ? "float64" : "float32");
          expectNear(
            parameter.grad!,
            gradient.map((value) => value / 1024),
          );
        }
      }
    });
  });

  test.each(["weightNorm", "spectralNorm"] as const)("%s keeps the dtype of each layer", (name) => {
    on(backend, () => {
      for (const dtype of dtypes) {
        const layer = nn[name](new nn.Linear(5, 4, { dtype }));
        const x = parameterOf(draw(10, 3, dtype), dtype, [2, 5]);
        const y = layer.forward(x);
        y.sum().backward();
        const gradients = layer.parameters().map(({ grad }) => grad?.dtype);
        expect([y.dtype, x.grad!.dtype, ...gradients]).toEqual(Array(2 + gradients.length).fill(dtype));
      }
    });
  });
});
