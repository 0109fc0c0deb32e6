/** Shared by the tests of quantized weights: fixtures of the `gguf` package and MLX, indices, bytes. */
import { join } from "node:path";
import type { BackendName } from "../../src/backend/names.ts";
import { withBackend, withStrict } from "../../src/backend/policy.ts";
import { environmentFlag } from "../../src/core/environment.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { loadSafetensors } from "../../src/io/safetensors/open.ts";
import type { GgmlFormat, QuantizedFormat, ScaleDType } from "../../src/quant/formats.ts";
import { blockFormat } from "../../src/quant/formats.ts";
import { QuantizedTensor } from "../../src/quant/quantized_tensor.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { bytesIn, tensorOf } from "../io/bytes.ts";

const folder = join(packageRoot, "test", "fixtures", "quant");

/**
 * The tensors of a file by name, created anew for each request, because closing a Metal context that a test used also
 * releases its tensors.
 */
function fresh(file: string): Readonly<Record<string, Tensor>> {
  const all = {};
  for (const [name, x] of Object.entries(loadSafetensors(join(folder, file)))) {
    const { dtype, shape } = x;
    const bytes = bytesIn(x);
    Object.defineProperty(all, name, { enumerable: true, get: () => tensorOf(dtype, shape, bytes) });
  }
  return all;
}

export const blocks = fresh("blocks.safetensors");
export const groups = fresh("groups.safetensors");

/** The backends with a separate implementation. */
export const places: readonly BackendName[] = environmentFlag("ORCHARD_SKIP_METAL")
  ? ["reference", "cpu"]
  : ["reference", "cpu", "metal"];

/** Runs on one backend, and on no other. */
export const on = <Result>(backend: BackendName, body: () => Result): Result =>
  withStrict(true, () => withBackend(backend, body));

/** A quantized tensor from the bytes of its blocks. */
export function blocksOf(format: GgmlFormat, rows: number, bytes: Uint8Array): QuantizedTensor {
  const { values, bytes: size } = blockFormat(format);
  const rowBytes = bytes.byteLength / rows;
  const packed = tensorOf("uint8", [rows, rowBytes], bytes);
  return new QuantizedTensor(format, [rows, (rowBytes / size) * values], "float32", { packed });
}

/** A quantized tensor of random bits, with scales that are small normal numbers. */
export function randomWeights(
  format: QuantizedFormat,
  rows: number,
  columns: number,
  make: (rows: number, columns: number) => QuantizedTensor,
): QuantizedTensor {
  if (typeof format === "object") return make(rows, columns);
  const { values, bytes: size } = blockFormat(format);
  const bytes = new Uint8Array((rows * columns * size) / values);
  let state = 12345;
  for (let at = 0; at < bytes.length; at++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    bytes[at] = state >>> 24;
  }
  for (let at = 0; at < bytes.length; at += size) for (const place of halves[format] ?? []) bytes[at + place] = 0x2a;
  if (format === "bf16") for (let at = 1; at < bytes.length; at += 2) bytes[at] = 0x3d;
  if (format === "mxfp4") for (let at = 0; at < bytes.length; at += size) bytes[at] = 124;
  return blocksOf(format, rows, bytes);
}

/** The upper bytes of the float16 in a block. */
const halves: Partial<Record<GgmlFormat, readonly number[]>> = {
  q4_0: [1],
  q4_1: [1, 3],
  q5_0: [1],
  q5_1: [1, 3],
  q8_0: [1],
  iq4_nl: [1],
  q2_K: [81, 83],
  q3_K: [109],
  q4_K: [1, 3],
  q5_K: [1, 3],
  q6_K: [209],
  f16: [1],
};

export const scaleDTypeOf = (name: string): ScaleDType => name.split(".")[2] as ScaleDType;
