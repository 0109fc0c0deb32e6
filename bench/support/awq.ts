/**
 * AWQ, for comparison (see docs/quantization.md): columns of W with large inputs are multiplied by a scale before
 * groups are rounded, and x is divided by the same scale, so that these columns have finer quantization steps.
 *
 * Source: J. Lin et al., "AWQ", 2024, section 3.2: s = (mean |x|)^α, with the α that gives the smallest error. Its
 * search for narrower groups is omitted.
 */
import { noGrad } from "../../src/autograd/modes.ts";
import { dequantize, fromArray, nn, type QuantizedTensor, type Tensor } from "../../src/index.ts";
import { tidy } from "../../src/tensor/tidy.ts";

/** α = 0, 1/20, …, 1. The first leaves columns unchanged. */
const STEPS = 20;

/** Returns the mean magnitudes of the input columns of linear layers, by the paths of the layers. */
export function meanMagnitudes(model: nn.Module, batches: readonly Tensor[]): Map<string, Float64Array> {
  const sums = new Map<string, { readonly columns: Float64Array; rows: number }>();
  const stops = [...model.namedModules()].flatMap(([name, layer]) => {
    if (!(layer instanceof nn.Linear)) return [];
    const sum = { columns: new Float64Array(layer.inputs), rows: 0 };
    sums.set(name, sum);
    const record = (_: unknown, [x]: readonly unknown[]): undefined => {
      const values = (x as Tensor).dataSync() as Float32Array;
      for (let at = 0; at < values.length; at++) sum.columns[at % layer.inputs] += Math.abs(values[at]);
      sum.rows += values.length / layer.inputs;
    };
    return [layer.registerForwardPreHook(record)];
  });
  const forward = model.forward.bind(model) as (batch: Tensor) => unknown;
  noGrad(() => batches.map((batch) => tidy(() => void forward(batch))));
  for (const stop of stops) stop();
  return new Map([...sums].map(([name, { columns, rows }]) => [name, columns.map((sum) => sum / rows)]));
}

/** s = magnitudes^α, at least 1e-4, scaled so that the smallest and the largest are equally far from 1. */
function scalesOf(magnitudes: Float64Array, alpha: number): Tensor {
  const powers = magnitudes.map((value) => Math.max(value ** alpha, 1e-4));
  let [low, high] = [Infinity, 0];
  for (const value of powers) [low, high] = [Math.min(low, value), Math.max(high, value)];
  return fromArray(
    Float32Array.from(powers, (value) => value / Math.sqrt(low * high)),
    [powers.length],
  );
}

/** Weights with scaled columns; the original weights are approximated by ŵ / scales. */
export interface ScaledWeights {
  readonly weight: QuantizedTensor;
  /** float32 [in]; x is divided by them. */
  readonly scales: Tensor;
  /** Σ |x (W − Ŵ)ᵀ|² over the rows x of the calibration. */
  readonly error: number;
}

/**
 * Returns the result with the smallest error.
 *
 * @param w [out, in]
 * @param magnitudes mean |x| of each column
 * @param products Σ xᵀ x, float64 [in, in]
 * @param round rounds W · diag(scales)
 */
export function scaleColumns(
  w: Tensor,
  magnitudes: Float64Array,
  products: Tensor,
  round: (scaled: Tensor) => QuantizedTensor,
): ScaledWeights {
  const all = Array.from({ length: STEPS + 1 }, (_, step) => {
    const scales = scalesOf(magnitudes, step / STEPS);
    const weight = noGrad(() => round(w.mul(scales) as Tensor));
    return { weight, scales, error: outputError(w, weight, scales, products) };
  });
  return all.reduce((best, each) => (each.error < best.error ? each : best));
}

function outputError(w: Tensor, weight: QuantizedTensor, scales: Tensor, products: Tensor): number {
  return tidy(() =>
    noGrad(() => {
      const restored = dequantize(weight, { dtype: "float32" }).to("float64").div(scales.to("float64")) as Tensor;
      const lost = w.to("float64").sub(restored) as Tensor;
      return Number(lost.matmul(products).mul(lost).sum().item());
    }),
  );
}
