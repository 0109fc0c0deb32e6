/** The statistics of a calibration, and weights rounded with it. */
import { describe, expect, test } from "bun:test";
import { ArgumentError } from "../../../src/core/errors.ts";
import {
  dequantize,
  Generator,
  nn,
  noGrad,
  type QuantizedTensor,
  quantize,
  randn,
  type Tensor,
  tensor,
} from "../../../src/index.ts";

const normal = (shape: number[], seed: number): Tensor => randn(shape, { generator: new Generator(seed) });
const numbers = (x: Tensor): number[] => Array.from(x.detach().dataSync() as ArrayLike<number>, Number);

/** Correlated inputs, as in a model. */
function correlated(count: number, width: number, seed: number): Tensor {
  const [base, mix] = [normal([count, 12], seed), normal([12, width], 99)];
  return base.matmul(mix).add(normal([count, width], seed + 1).mul(0.3));
}

describe("calibrate records the inputs of layers", () => {
  const model = new nn.Sequential(new nn.Linear(32, 16), new nn.Linear(16, 4));
  const batches = [correlated(20, 32, 1), correlated(7, 32, 5)];

  test("calibrate records the largest magnitudes and the products of inputs, over all batches", () => {
    const calibration = nn.calibrate(model, batches, { products: true });
    expect([...calibration.keys()]).toEqual(["0", "1"]);
    const { rows, ranges, products } = calibration.get("0")!;
    expect(rows).toBe(27);
    const all = batches.flatMap((batch) => batch.toArray() as unknown as number[][]);
    expect(numbers(ranges)).toEqual(
      Array.from({ length: 32 }, (_, k) => Math.max(...all.map((row) => Math.abs(row[k])))),
    );
    const got = numbers(products!);
    for (let i = 0; i < 32; i++)
      for (let j = 0; j < 32; j++) {
        const terms = all.map((row) => row[i] * row[j]);
        const exact = terms.reduce((sum, term) => sum + term, 0);
        const size = terms.reduce((sum, term) => sum + Math.abs(term), 0);
        expect(Math.abs(got[i * 32 + j] - exact)).toBeLessThanOrEqual(2 * Math.sqrt(27) * 2 ** -24 * size);
      }
    expect(nn.calibrate(model, batches).get("0")!.products).toBeNull();
  });

  test("calibrate leaves the model unchanged, also if it fails", () => {
    const own = new nn.Sequential(new nn.Linear(32, 16), new nn.Dropout(0.5));
    nn.calibrate(own, batches);
    expect([Object.keys(own), own.training]).toEqual([["0", "1", "training"], true]);
    expect(Object.hasOwn((own as unknown as { 0: nn.Linear })[0], "forward")).toBe(false);
    expect(() => nn.calibrate(own, [normal([2, 31], 1)])).toThrow();
    expect(Object.hasOwn((own as unknown as { 0: nn.Linear })[0], "forward")).toBe(false);
  });

  test("calibrate accepts models of tokens, and rejects empty batches", () => {
    const gpt = new nn.GPT({ vocabularySize: 8, contextLength: 8, layers: 1, heads: 1, width: 32 });
    const calibration = nn.calibrate(gpt, [tensor([[1, 2, 3]], { dtype: "int32" })]);
    expect(calibration.get("blocks.0.feedForward.down")!.ranges.shape).toEqual([128]);
    expect(() => nn.calibrate(gpt, [])).toThrow(ArgumentError);
    expect(() => nn.calibrate(gpt, 3 as never)).toThrow("expected batches to be a list of batches");
  });
});

describe("quantizeModel with a calibration", () => {
  const width = 128;
  const [training, held] = [correlated(400, width, 11), correlated(200, width, 21)];
  const layer = () => new nn.Sequential(new nn.Linear(width, 24, { generator: new Generator(4) }));
  const weight = () => (layer() as unknown as { 0: nn.Linear })[0].weight;
  const weightOf = (model: nn.Module) => model.quantizedState()["0.weight"] as QuantizedTensor;
  const exact = numbers(noGrad(() => layer().forward(held)));
  const errorOf = (model: nn.Sequential): number =>
    numbers(noGrad(() => model.forward(held))).reduce((sum, value, at) => sum + (value - exact[at]) ** 2, 0);

  test.each([
    { bits: 2, groupSize: 32 },
    { bits: 3, groupSize: 64 },
    { bits: 4, groupSize: 128 },
    { bits: 4, groupSize: 32, symmetric: true },
  ] as const)("calibration gives a smaller error on inputs that it did not see: %p", (format) => {
    const [plain, own] = [layer(), layer()];
    nn.quantizeModel(plain, { format });
    nn.quantizeModel(own, { format, calibration: nn.calibrate(layer(), [training], { products: true }) });
    expect(weightOf(own).format).toEqual({ symmetric: false, ...format });
    expect(errorOf(own)).toBeLessThan(0.6 * errorOf(plain));
  });

  test("rounding is to the nearest level if inputs are uncorrelated", () => {
    const identity = Array.from({ length: width }, (_, i) =>
      Array.from({ length: width }, (_, j) => (i === j ? 1 : 0)),
    );
    const format = { bits: 4, groupSize: 32 } as const;
    const [plain, own] = [layer(), layer()];
    nn.quantizeModel(plain, { format });
    nn.quantizeModel(own, { format, calibration: nn.calibrate(layer(), [tensor(identity)], { products: true }) });
    expect(numbers(dequantize(weightOf(own)))).toEqual(numbers(dequantize(weightOf(plain))));
  });

  test("quantizeModel uses the method that `rounding` names, and GPTQ by default", () => {
    const format = { bits: 3, groupSize: 32 } as const;
    const calibration = nn.calibrate(layer(), [training], { products: true });
    const weights = (options: Partial<nn.QuantizeModelOptions>): number[] => {
      const own = layer();
      nn.quantizeModel(own, { format, ...options });
      return numbers(dequantize(weightOf(own)));
    };
    for (const rounding of ["nearest", "leastSquares"] as const) {
      const alone = numbers(dequantize(quantize(weight(), { ...format, rounding })));
      expect(weights({ rounding, calibration })).toEqual(alone);
    }
    expect(weights({ calibration })).toEqual(weights({ rounding: "gptq", calibration }));
    expect(weights({ calibration })).not.toEqual(weights({ rounding: "nearest" }));
    expect(weights({ rounding: "gptq", calibration: new Map() })).toEqual(weights({ rounding: "nearest" }));
    expect(() => weights({ rounding: "gptq" })).toThrow('rounding: "gptq" requires a calibration, got none');
  });

  test("inputs of zeros are accepted; ranges alone and products of other sizes are rejected", () => {
    const format = { bits: 4, groupSize: 32 } as const;
    const zeros = nn.calibrate(layer(), [held.mul(0)], { products: true });
    expect(() => nn.quantizeModel(layer(), { format, calibration: zeros })).not.toThrow();
    expect(() => nn.quantizeModel(layer(), { format, calibration: nn.calibrate(layer(), [held]) })).toThrow(
      "expected a calibration with products for 0, got only ranges",
    );
    const other = nn.calibrate(new nn.Sequential(new nn.Linear(64, 2)), [normal([3, 64], 1)], { products: true });
    expect(() => nn.quantizeModel(layer(), { format, calibration: other })).toThrow("expected products of [128, 128]");
    expect(() => nn.quantizeModel(layer(), { format, calibration: {} as never })).toThrow(ArgumentError);
  });
});
