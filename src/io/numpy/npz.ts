/** NumPy's .npz archives: zip files of .npy files. */
import { readFileSync } from "node:fs";
import { ArgumentError, FileFormatError } from "../../core/errors.ts";
import { aPath, flag, isArray } from "../../core/kinds.ts";
import { type Kind, named, operand, parameters } from "../../core/parameters.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { countScriptBlock, reserve } from "../../tensor/reserve.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { writeAtomically } from "../atomic.ts";
import { withFileErrors } from "../file_errors.ts";
import { decodeArray, encodeArray } from "./array.ts";
import type { Fail } from "./header.ts";
import { entriesOf, unpacked } from "./zip.ts";

/**
 * Loads the arrays of a .npz file by name, as `np.savez` and `np.savez_compressed` write them. Each is read as by
 * {@link loadNpy}, and checksums are verified.
 *
 * @example
 * const { x, y } = io.loadNpz("data.npz");
 *
 * @throws {FileError} for a file that does not exist or can't be read. @throws {FileFormatError} for an invalid file,
 * and `unsupportedType` for a type that tensors do not have. @throws {OutOfMemoryError} if the arrays would exceed the
 * memory limit; nothing is inflated then.
 */
export function loadNpz(path: string): Record<string, Tensor> {
  const checkedPath = loadParameters([path]).path;
  const bytes = withFileErrors("loadNpz", checkedPath, () => readFileSync(checkedPath));
  const fail: Fail = (code, message) => new FileFormatError("loadNpz", code, checkedPath, message);
  const entries = entriesOf(bytes, fail);
  reserve(entries.reduce((sum, { size }) => sum + size, 0)); // check before any byte is inflated
  return Object.fromEntries(
    entries.map((entry) => {
      const array = unpacked(entry, fail);
      if (entry.isDeflated) countScriptBlock(array.buffer as ArrayBuffer);
      const inner: Fail = (code, message) => fail(code, `${entry.name}: ${message}`);
      return [entry.name.slice(0, -".npy".length), decodeArray(array, inner)];
    }),
  );
}
/** The package is loaded on first use. */
const archives = () => require("fflate") as typeof import("fflate");

const loadParameters = parameters("loadNpz", { path: operand(aPath) });

/** Options of {@link saveNpz}. */
export interface SaveNpzOptions {
  /** Compresses arrays, as `np.savez_compressed` does. Default false. */
  compressed?: boolean | undefined;
}

/**
 * Writes tensors to a .npz file that NumPy can read, atomically.
 *
 * @param tensors by name; a name must not be empty or contain NUL
 *
 * @example
 * await io.saveNpz("data.npz", { x, y }, { compressed: true });
 *
 * @throws {DTypeError} `notInNumPy` for bfloat16. @throws {ArgumentError} `tooLarge` for 4 GB and more.
 * @throws {FileError} `notFound` (no such folder), `diskFull` …
 */
export async function saveNpz(
  path: string,
  tensors: Readonly<Record<string, Tensor>>,
  options?: SaveNpzOptions,
): Promise<void>;
export async function saveNpz(...values: unknown[]): Promise<void> {
  const { path, tensors, compressed } = saveParameters(values);
  const files = tensors.map(([name, x]) => {
    const [header, elements] = encodeArray("saveNpz", x);
    const whole = new Uint8Array(header.byteLength + elements.byteLength);
    whole.set(header);
    whole.set(elements, header.byteLength);
    return [`${name}.npy`, whole] as const;
  });
  const total = files.reduce((sum, [, { byteLength }]) => sum + byteLength, 0);
  if (total > MOST_BYTES)
    throw new ArgumentError(
      "saveNpz",
      "tooLarge",
      `expected less than 4 GB in total, got ${total} bytes; use safetensors`,
    );
  const archive = archives().zipSync(Object.fromEntries(files), { level: compressed ? 6 : 0, mtime: firstTime() });
  await writeAtomically("saveNpz", path, (file) => void file.write(archive));
}
/** The earliest time of the zip format, as NumPy writes it, so that the bytes depend only on the tensors. */
const firstTime = () => new Date(1980, 0, 1); // on first use, because the first date loads time zones
/** The limit of 32-bit lengths, minus room for the list of names. */
const MOST_BYTES = 2 ** 32 - 2 ** 24;

const namedTensors: Kind<readonly (readonly [string, Tensor])[]> = {
  expected: "an object of tensors by name",
  parse(value, operation) {
    if (typeof value !== "object" || value === null || isArray(value)) return undefined;
    const found: [string, Tensor][] = [];
    for (const [name, given] of Object.entries(value)) {
      const tensor = aTensor.parse(given, operation, name);
      if (tensor === undefined || name === "" || name.includes("\0")) return undefined;
      found.push([name, tensor]);
    }
    return found;
  },
};
const saveParameters = parameters("saveNpz", {
  path: operand(aPath),
  tensors: operand(namedTensors),
  compressed: named(flag, false),
});
