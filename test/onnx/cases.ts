/** The files of test/fixtures/onnx: tests of single nodes, which scripts/fixtures/onnx_*.py write. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { PbfReader } from "pbf";
import type { Value } from "../../src/onnx/call.ts";
import { tensorProto } from "../../src/onnx/schema.ts";
import { toValue } from "../../src/onnx/tensors.ts";

type Place = readonly [offset: number, length: number];
type Stored =
  | null
  | { readonly tensor: Place }
  | { readonly items: readonly Stored[] }
  | { readonly map: readonly (readonly [key: string | number, value: number])[] };

interface StoredCase {
  readonly name: string;
  readonly model: Place;
  readonly rtol: number;
  readonly atol: number;
  readonly sets: readonly { readonly inputs: readonly Stored[]; readonly outputs: readonly Stored[] }[];
}

/** A test of one or a few nodes. */
export interface NodeCase extends Pick<StoredCase, "name" | "rtol" | "atol"> {
  readonly model: Uint8Array;
  /** Inputs and expected outputs, in the order of the model's. Reading one throws if its elements have no dtype. */
  readonly sets: readonly { readonly inputs: readonly (() => Value)[]; readonly outputs: readonly (() => Value)[] }[];
}

/** Reads all cases of a file. @param name `contrib` for com.microsoft, `versions` for drawn nodes of all versions,
 * `ml` for models of scikit-learn, `graphs` for drawn graphs */
export const readNodeCases = (name: "node" | "contrib" | "versions" | "ml" | "graphs" = "node"): NodeCase[] =>
  readCaseFile(join(import.meta.dir, "..", "fixtures", "onnx", `${name}.bin`));

/** Reads all cases of a file in the form of test/fixtures/onnx. */
export function readCaseFile(path: string): NodeCase[] {
  const file = readFileSync(path);
  const content = Bun.zstdDecompressSync(file);
  const length = content.readUInt32LE(0);
  const { cases } = JSON.parse(content.toString("utf8", 4, 4 + length)) as { cases: StoredCase[] };
  const bytesAt = ([offset, size]: Place) => content.subarray(4 + length + offset, 4 + length + offset + size);
  const readValue = (stored: Stored): Value => {
    if (stored === null) return undefined;
    if ("map" in stored) return new Map(stored.map);
    return "items" in stored ? stored.items.map(readValue) : tensorIn(bytesAt(stored.tensor));
  };
  return cases.map(({ name, model, rtol, atol, sets }) => ({
    name,
    rtol,
    atol,
    model: bytesAt(model),
    sets: sets.map(({ inputs, outputs }) => ({
      inputs: inputs.map((stored) => () => readValue(stored)),
      outputs: outputs.map((stored) => () => readValue(stored)),
    })),
  }));
}

/** A top-level message has no length before it. */
function tensorIn(bytes: Uint8Array): Value {
  return toValue(tensorProto(lengthPrefixed(bytes)), { path: "node.bin" });
}

function lengthPrefixed(bytes: Uint8Array): PbfReader {
  const prefix: number[] = [];
  for (let rest = bytes.length; ; rest >>>= 7) {
    prefix.push(rest < 0x80 ? rest : (rest & 0x7f) | 0x80);
    if (rest < 0x80) break;
  }
  return new PbfReader(Uint8Array.from([...prefix, ...bytes]));
}
