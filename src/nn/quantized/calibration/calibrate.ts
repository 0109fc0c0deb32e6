import { noGrad } from "../../../autograd/modes.ts";
import { ArgumentError, ShapeError } from "../../../core/errors.ts";
import { flag, instanceOf } from "../../../core/kinds.ts";
import { type Kind, named, operand, parameters, reading } from "../../../core/parameters.ts";
import { toDType } from "../../../ops/copy/cast.ts";
import { fromArray } from "../../../ops/creation/tensor.ts";
import { abs, add } from "../../../ops/elementwise/arithmetic.ts";
import { maximum } from "../../../ops/elementwise/extrema.ts";
import { matmul } from "../../../ops/matmul/matmul.ts";
import { amax } from "../../../ops/reduction/extrema.ts";
import { transpose } from "../../../ops/view/permute.ts";
import { reshape } from "../../../ops/view/reshape.ts";
import { Tensor } from "../../../tensor/tensor.ts";
import { keep, tidy } from "../../../tensor/tidy.ts";
import { Linear } from "../../layers/linear.ts";
import { inEvaluation, Module } from "../../layers/module.ts";

/** Statistics that {@link calibrate} recorded about a linear layer's inputs. */
export interface LayerCalibration {
  /** Number of input rows. */
  readonly rows: number;
  /** The largest magnitude of each column, float32 [inputs]. */
  readonly ranges: Tensor;
  /** Σ xᵀ x, float32 [inputs, inputs]; null without `products`. */
  readonly products: Tensor | null;
}

/** Calibrations of linear layers, by the layers' paths in the model. */
export type Calibration = ReadonlyMap<string, LayerCalibration>;

/** Options of {@link calibrate}. */
export interface CalibrateOptions {
  /** Whether Σ xᵀ x is recorded too, which GPTQ requires. It takes inputs² values per layer. Default false. */
  products?: boolean | undefined;
}

const someBatches: Kind<Iterable<unknown>> = {
  expected: "a list of batches, each the first argument of the model's forward",
  parse: (value) =>
    typeof value === "object" && value !== null && Symbol.iterator in value && !Tensor.isTensor(value)
      ? (value as Iterable<unknown>)
      : undefined,
};

const calibrateParameters = parameters("calibrate", {
  model: operand(instanceOf(Module, "a module")),
  batches: operand(someBatches),
  products: named(flag, false),
});

/**
 * Runs a model on batches in evaluation mode without gradients, and records statistics of the inputs of its linear
 * layers. `smoothQuantize` and `quantizeModel({ calibration })` use them.
 *
 * @param model a GPT, a Llama, or any module whose `forward` takes one batch
 * @param batches at least one, each the first argument of the model's `forward`
 *
 * @example
 * const calibration = calibrate(model, [tokens], { products: true });
 * calibration.get("blocks.0.attention.output")!.ranges; // float32[128]
 * quantizeModel(model, { format: { bits: 3, groupSize: 64 }, calibration });
 *
 * @throws {ArgumentError} `noBatches`. @throws whatever the model throws.
 */
export function calibrate(model: Module, batches: Iterable<unknown>, options?: CalibrateOptions): Calibration;
export function calibrate(...values: unknown[]): Calibration {
  const { model, batches, products } = calibrateParameters(values);
  const given = reading("calibrate", () => [...batches]);
  if (given.length === 0) throw new ArgumentError("calibrate", "noBatches", "expected at least one batch, got none");
  const recorders = [...model.namedModules()]
    .filter((entry): entry is [string, Linear] => entry[1] instanceof Linear)
    .map(([name, layer]) => [name, new Recorder(layer, products)] as const);
  try {
    const forward = model.forward.bind(model) as (batch: unknown) => unknown;
    inEvaluation(model, () => noGrad(() => given.map((batch) => tidy(() => void forward(batch)))));
  } finally {
    for (const [, recorder] of recorders) recorder.stop();
  }
  return new Map(recorders.flatMap(([name, recorder]) => (recorder.result === null ? [] : [[name, recorder.result]])));
}

/** Records a layer's inputs by a forward pre-hook. */
class Recorder {
  result: LayerCalibration | null = null;
  readonly stop: () => void;

  constructor(
    private readonly layer: Linear,
    private readonly hasProducts: boolean,
  ) {
    this.stop = layer.registerForwardPreHook((_, [x]) => this.record(x));
  }

  private record(x: unknown): undefined {
    const { inputs } = this.layer;
    if (!Tensor.isTensor(x) || x.shape.at(-1) !== inputs || x.size === 0) return; // the layer will reject wrong inputs
    const before = this.result;
    const next = tidy(() => {
      const rows = toDType(reshape(x, [x.size / inputs, inputs]), "float32");
      const largest = amax(abs(rows), { dim: 0 });
      const squares = this.hasProducts ? matmul(transpose(rows, 0, 1), rows) : null;
      const sum = squares && before?.products ? add(squares, before.products) : squares;
      const ranges = before ? maximum(largest, before.ranges) : largest;
      return { ranges: keep(ranges), products: sum && keep(sum) };
    });
    this.result = { ...next, rows: (before?.rows ?? 0) + x.size / inputs };
    before?.ranges.dispose();
    before?.products?.dispose();
  }
}

/** @internal Returns Σ xᵀ x of a layer in float64. @throws {ArgumentError} `noProducts` @throws {ShapeError} */
export function productsFor(operation: string, name: string, layer: LayerCalibration, inputs: number): Tensor {
  if (layer.products === null)
    throw new ArgumentError(
      operation,
      "noProducts",
      `expected a calibration with products for ${name}, got only ranges; pass { products: true } to calibrate`,
    );
  const { shape } = layer.products;
  if (shape[0] !== inputs || shape[1] !== inputs)
    throw new ShapeError(
      operation,
      "shapesDiffer",
      `expected products of [${inputs}, ${inputs}] for ${name}, got ${layer.products.describe()}`,
    );
  return fromArray(Float64Array.from(noGrad(() => layer.products!.dataSync()) as Float32Array), shape);
}
