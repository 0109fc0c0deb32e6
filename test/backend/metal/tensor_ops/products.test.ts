/** Drawn kernels that multiply with `matmul2d`, compared with sums in float64, under the checker. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { metalContext } from "../../../../src/backend/metal/context.ts";
import { type DType, metalKernel } from "../../../../src/index.ts";
import { Random } from "../../../ops/samples.ts";
import { repeats } from "../../../support/repeats.ts";
import { seed } from "../../../support/some.ts";
import { drawProduct, memoryOf, type Product, sourceOf } from "./program.ts";

const { isSoftware } = metalContext();
/** A Mac runs these kernels only if its compiler knows tensors. */
const hasTensors = isSoftware || metalContext().deviceInfo({ probe: true }).capabilities!.tensorOps.supported;

beforeAll(() => {
  if (isSoftware) metalContext().configure("check", true);
});
afterAll(() => {
  if (isSoftware) metalContext().configure("check", false);
});

/** Numbers of which up to 80 products have an exact sum in every type. */
function matrix(random: Random, [rows, columns]: readonly [number, number], padding: number, least: number): number[] {
  return Array.from({ length: rows * (columns + padding) }, () => random.integer(least, 1));
}

/** A buffer of a dtype. A bfloat16 is the upper half of a float32. */
const buffers: Partial<
  Record<
    DType,
    (values: readonly number[]) => Uint16Array | Float16Array | Int8Array | Uint8Array | Int32Array | Float32Array
  >
> = {
  float16: (values) => new Float16Array(values),
  bfloat16: (values) => new Uint16Array(new Uint32Array(new Float32Array(values).buffer).map((bits) => bits >>> 16)),
  float32: (values) => new Float32Array(values),
  int8: (values) => new Int8Array(values),
  uint8: (values) => new Uint8Array(values),
  int32: (values) => new Int32Array(values),
};

const least = (type: string) => (type === "uint8" ? 0 : -1);

function expected(
  product: Product,
  left: readonly number[],
  right: readonly number[],
  out: readonly number[],
): number[] {
  const [m, n, depth] = product.size;
  const [leftPitch, rightPitch] = ([0, 1] as const).map((at) => memoryOf(product, at)[1] + product.padding[at]);
  const pitch = n + product.padding[2];
  const result = [...out];
  for (let i = 0; i < m; i++)
    for (let j = 0; j < n; j++) {
      let sum = product.result === "memory" ? out[i * pitch + j] : 0;
      for (let k = 0; k < depth; k++) {
        const a = product.transposed[0] ? left[k * leftPitch + i] : left[i * leftPitch + k];
        sum += a * (product.transposed[1] ? right[j * rightPitch + k] : right[k * rightPitch + j]);
      }
      result[i * pitch + j] = sum;
    }
  return result;
}

function run(product: Product, source: string, random: Random) {
  const { left, right, out, size, tile, padding, groups } = product;
  const values = [
    matrix(random, memoryOf(product, 0), padding[0], least(left)),
    matrix(random, memoryOf(product, 1), padding[1], least(right)),
    matrix(random, [size[0], size[1]], padding[2], -1),
  ] as const;
  const [a, b, c] = ([left, right, out] as const).map((dtype, at) => buffers[dtype]!(values[at]));
  metalContext().report({ clear: true });
  const kernel = metalKernel({ name: "k", source, languageVersion: "4.0" });
  const { outputs } = kernel.run(
    { left: a, right: b, out: c },
    { threadgroups: [Math.ceil(size[1] / tile[1]), Math.ceil(size[0] / tile[0])], threadgroup: groups * 32 },
  );
  const findings = metalContext()
    .report({ clear: true })
    .findings.map(({ kind, message }) => `${kind}: ${message}`);
  const wanted = buffers[out]!(expected(product, ...values));
  return { findings, result: Object.values(outputs).at(-1), expected: wanted };
}

const first = seed * 10_000;

test.skipIf(!hasTensors).each(Array.from({ length: repeats({ usual: 6, all: 150 }) }, (_, at) => first + at))(
  "product %d equals sums in float64",
  (at) => {
    const random = new Random(at);
    const product = drawProduct(random);
    const source = sourceOf(product);
    const { findings, result, expected } = run(product, source, random);
    expect({ source, findings, result }).toEqual({ source, findings: [], result: expected });
  },
);
