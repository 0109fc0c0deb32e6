/** Files of quantized weights with random errors: each is read whole, or rejected with a typed error. */
import { describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import fc from "fast-check";
import { OrchardError } from "../../src/core/errors.ts";
import { dequantize, io, ones, QuantizedTensor, quantize, quantizeGgml, tensor, tidy } from "../../src/index.ts";
import { testFolder } from "../support/folder.ts";

const folder = testFolder("weights-random");
const weights = tensor(Array.from({ length: 2 * 256 }, (_, at) => Math.sin(at * 1.3))).reshape([2, 256]);
const tensors = {
  affine: quantize(weights, { bits: 4, groupSize: 64 }),
  symmetric: quantize(weights, { bits: 3, groupSize: 32, symmetric: true, scaleDType: "bfloat16" }),
  blocks: quantizeGgml(weights, "q4_0"),
  superblocks: quantizeGgml(weights, "q4_K"),
  plain: ones([5]),
};

/** The outcome of a file: the number of weights that were read and dequantized, or the code of a typed error. */
function outcomeOf(path: string): number | string {
  try {
    return tidy(() => {
      const all = Object.values(io.loadWeights(path));
      for (const own of all) {
        const values = own instanceof QuantizedTensor ? dequantize(own) : own;
        expect(values.toArray()).toHaveLength(values.shape[0] ?? 0);
      }
      return all.length;
    });
  } catch (error) {
    if (error instanceof OrchardError) return error.code;
    throw error;
  }
}

/** A safetensors file with another header text, followed by the data. */
function withHeader(file: Buffer, edit: (header: string) => string): Buffer {
  const end = 8 + Number(file.readBigUInt64LE());
  const header = Buffer.from(edit(file.toString("utf8", 8, end)));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.byteLength));
  return Buffer.concat([length, header, file.subarray(end)]);
}

const words = '0 -1 1 3 4 32 1e3 9007199254740993 null [] {} "q8_0" "U8" "I64"'.split(" ");

async function saved(path: string): Promise<Buffer> {
  const { symmetric, affine, ...ggml } = tensors;
  if (path.endsWith(".gguf")) await io.saveGguf(path, ggml);
  else await io.saveSafetensors(path, { ...ggml, symmetric, affine });
  return readFileSync(path);
}

/** Counts the outcomes of randomly edited files. */
function outcomes<T>(path: string, edits: fc.Arbitrary<T>, edited: (edit: T) => Buffer): Map<number | string, number> {
  const counts = new Map<number | string, number>();
  fc.assert(
    fc.property(edits, (edit) => {
      writeFileSync(path, edited(edit));
      const outcome = outcomeOf(path);
      counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
    }),
    { numRuns: 1500, seed: 7 },
  );
  return counts;
}

describe.each(["safetensors", "gguf"])("random errors in %s", (ending) => {
  const path = folder.file(`random.${ending}`);

  test("a file with random bytes loads, or is rejected with a typed error", async () => {
    const file = await saved(path);
    const edit = fc.tuple(fc.nat(file.byteLength - 1), fc.nat(255));
    const counts = outcomes(path, fc.array(edit, { minLength: 1, maxLength: 3 }), (edits) => {
      const bytes = Buffer.from(file);
      for (const [position, value] of edits) bytes[position] = value;
      return bytes;
    });
    expect(counts.get(ending === "gguf" ? 3 : 5)).toBeGreaterThan(100);
    expect([...counts.keys()].filter((outcome) => typeof outcome === "string").length).toBeGreaterThan(3);
  });

  test("a truncated file is rejected", async () => {
    const file = await saved(path);
    const padding = ending === "gguf" ? 32 : 0; // GGUF's files may end before the padding of their last tensor
    for (let cut = 1 + padding; cut < file.byteLength; cut += 7) {
      writeFileSync(path, file.subarray(0, file.byteLength - cut));
      expect(outcomeOf(path)).toBeString();
    }
  });
});

test("random values in the header of safetensors, including the formats, are loaded or rejected", async () => {
  const path = folder.file("header.safetensors");
  const file = await saved(path);
  const values = /(?<=[:,[\\{"])\d+(?=[,\]}])|"(U8|U32|F32|BF16)"|\\"(q4_0|q4_K|affine|symmetric|float32|bfloat16)\\"/g;
  const places = [...file.toString("utf8", 8, 8 + Number(file.readBigUInt64LE())).matchAll(values)];
  expect(places.length).toBeGreaterThan(20);
  const counts = outcomes(path, fc.tuple(fc.nat(places.length - 1), fc.constantFrom(...words)), ([place, word]) =>
    withHeader(file, (header) => {
      const { index, 0: old } = places[place] as RegExpExecArray;
      const own = old.startsWith("\\") ? word.replaceAll('"', '\\"') : word;
      return header.slice(0, index) + own + header.slice(index + old.length);
    }),
  );
  expect(counts.get("invalidQuantization")).toBeGreaterThan(100);
});
