/**
 * Convolutions with short lines, in three dimensions: drawn geometries, whose results and gradients are compared with
 * the sums that define them, in float64.
 */
import { describe, expect, test } from "bun:test";
import { conv3d, grad, type Tensor, tensor, withBackend, withStrict } from "../../../src/index.ts";
import { elementCount } from "../../../src/tensor/shape.ts";
import { repeats } from "../../support/repeats.ts";
import { testSameBits } from "../same_bits.ts";
import { Random } from "../samples.ts";

interface Geometry {
  readonly x: readonly number[];
  readonly weight: readonly number[];
  readonly options: {
    readonly stride: number[];
    readonly padding: number[];
    readonly dilation: number[];
    readonly groups: number;
  };
}

function drawGeometry(random: Random): Geometry {
  const each = (least: number, most: number) => [0, 1, 2].map(() => random.integer(least, most));
  const groups = random.integer(1, 2);
  const [channels, outputs] = [random.integer(1, 9), random.integer(1, 17)];
  const kernel = each(1, 4);
  const dilation = each(1, random.integer(1, 2));
  const input = kernel.map((size, axis) => (size - 1) * dilation[axis] + random.integer(1, 11));
  return {
    x: [random.integer(1, 3), groups * channels, ...input],
    weight: [groups * outputs, channels, ...kernel],
    options: { stride: each(1, random.integer(1, 2)), padding: each(0, 2), dilation, groups },
  };
}

const drawn = (random: Random, shape: readonly number[], dtype: "float32" | "float64"): Tensor =>
  tensor(
    Float64Array.from({ length: elementCount(shape) }, () => Math.fround(random.next() * 2 - 1)),
    { shape, dtype, requiresGrad: true },
  );

/** Calls `use` with the positions of x, weight and result in each product of the sums. */
function forEachProduct({ x, weight, options }: Geometry, output: readonly number[], use: Use): void {
  const { stride, padding, dilation, groups } = options;
  const [pixels, places] = [elementCount(x.slice(2)), elementCount(weight.slice(2))];
  const results = elementCount(output);
  const [outputs, channels] = [weight[0], weight[1]];
  for (let result = 0; result < results; result++)
    for (let place = 0; place < places; place++) {
      let [pixel, size, left, within] = [0, 1, result, place];
      for (let axis = 2; axis >= 0; axis--) {
        const kernel = weight[2 + axis];
        const at = (left % output[axis]) * stride[axis] + (within % kernel) * dilation[axis] - padding[axis];
        pixel = at < 0 || at >= x[2 + axis] || pixel < 0 ? -1 : pixel + at * size;
        size *= x[2 + axis];
        left = Math.floor(left / output[axis]);
        within = Math.floor(within / kernel);
      }
      if (pixel < 0) continue;
      for (let n = 0; n < x[0]; n++)
        for (let o = 0; o < outputs; o++)
          for (let c = 0; c < channels; c++) {
            const channel = n * x[1] + Math.floor(o / (outputs / groups)) * channels + c;
            use(channel * pixels + pixel, (o * channels + c) * places + place, (n * outputs + o) * results + result);
          }
    }
}
type Use = (x: number, weight: number, result: number) => void;

function computed(random: Random, geometry: Geometry, dtype: "float32" | "float64") {
  const [x, weight] = [drawn(random, geometry.x, dtype), drawn(random, geometry.weight, dtype)];
  const y = conv3d(x, weight, geometry.options);
  const g = drawn(random, y.shape, dtype);
  return { x, weight, y, g, gradients: grad([y], [x, weight], { gradOutputs: [g] }) };
}
const numbersOf = (x: Tensor) => x.detach().dataSync() as Float64Array;

test("results and gradients of drawn geometries equal the definition", () => {
  const random = new Random(61);
  withStrict(true, () =>
    withBackend("cpu", () => {
      for (let round = 0; round < repeats({ usual: 40, all: 400 }); round++) {
        const geometry = drawGeometry(random);
        const dtype = round % 2 === 0 ? "float32" : "float64";
        const { x, weight, y, g, gradients } = computed(random, geometry, dtype);
        const [ofX, ofWeight, ofG] = [x, weight, g].map(numbersOf) as [Float64Array, Float64Array, Float64Array];
        const [sums, sizes] = [0, 1].map(() => [y, x, weight].map(({ size }) => new Float64Array(size)));
        const add = (which: number, at: number, term: number): void => {
          sums[which][at] += term;
          sizes[which][at] += Math.abs(term);
        };
        forEachProduct(geometry, y.shape.slice(2), (at, place, result) => {
          add(0, result, ofX[at] * ofWeight[place]);
          add(1, at, ofG[result] * ofWeight[place]);
          add(2, place, ofG[result] * ofX[at]);
        });
        // the bound of cases.ts: √k roundings of k terms
        const epsilon = (dtype === "float32" ? 2 ** -24 : 2 ** -53) * (8 + 4 * Math.sqrt(weight.size));
        for (const [which, found] of [y, ...gradients].entries()) {
          const isNear = numbersOf(found).every(
            (each, at) => Math.abs(each - sums[which][at]) <= epsilon * (sizes[which][at] + 1e-6),
          );
          expect({ ...geometry, which, isNear }).toEqual({ ...geometry, which, isNear: true });
        }
      }
    }),
  );
});

test("an infinite element of x makes only gradients of kernel elements that read it non-finite", () => {
  const geometry = { x: [1, 3, 3, 4, 5], weight: [6, 3, 2, 2, 2] } as const;
  const options = { stride: [1, 1, 1], padding: [0, 0, 0], dilation: [1, 1, 1], groups: 1 };
  withBackend("cpu", () => {
    const { x, weight, y, g } = computed(new Random(62), { ...geometry, options }, "float32");
    const values = Float64Array.from(numbersOf(x));
    values[0] = Number.POSITIVE_INFINITY; // only the first element of the kernel reads the first element
    const infinite = tensor(values, { shape: geometry.x, dtype: "float32" });
    const [gradient] = grad([conv3d(infinite, weight, options)], [weight], { gradOutputs: [g] });
    const areFinite = [...numbersOf(gradient)].map(Number.isFinite);
    expect(areFinite).toEqual(areFinite.map((_, at) => at % 24 !== 0)); // the first channel's first element
    expect(y.shape).toEqual([1, 6, 2, 3, 4]);
  });
});

describe("results of planes are bit-identical", () =>
  testSameBits((backend) => {
    const random = new Random(63);
    return Array.from({ length: backend === "cpu" ? 8 : 1 }, () => {
      const { y, gradients } = computed(random, drawGeometry(random), "float32");
      return [y, ...gradients].map((each) => [...numbersOf(each)]);
    });
  }));
