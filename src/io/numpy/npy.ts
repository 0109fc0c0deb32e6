/** NumPy's .npy files of one array. */
import { readFileSync } from "node:fs";
import { FileFormatError } from "../../core/errors.ts";
import { aPath } from "../../core/kinds.ts";
import { operand, parameters } from "../../core/parameters.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { writeAtomically } from "../atomic.ts";
import { withFileErrors } from "../file_errors.ts";
import { decodeArray, encodeArray } from "./array.ts";

/**
 * Loads the array of a .npy file as a tensor. It supports floats of 16, 32 and 64 bits, complex numbers of 64 and 128
 * bits, the integer dtypes of tensors, and booleans, in either byte order, row-major or column-major. No code in the file is run: arrays of Python objects
 * are rejected.
 *
 * @example
 * const x = io.loadNpy("x.npy");
 *
 * @throws {FileError} for a file that does not exist or can't be read. @throws {FileFormatError} for an invalid file,
 * and `unsupportedType` for a type that tensors do not have.
 */
export function loadNpy(path: string): Tensor {
  const checkedPath = loadParameters([path]).path;
  const bytes = withFileErrors("loadNpy", checkedPath, () => readFileSync(checkedPath));
  return decodeArray(bytes, (code, message) => new FileFormatError("loadNpy", code, checkedPath, message));
}
const loadParameters = parameters("loadNpy", { path: operand(aPath) });

/**
 * Writes a tensor to a .npy file, byte for byte as NumPy does, atomically.
 *
 * @example
 * await io.saveNpy("x.npy", x);
 *
 * @throws {DTypeError} `notInNumPy` for bfloat16. @throws {FileError} `notFound` (no such folder), `diskFull` …
 */
export async function saveNpy(path: string, x: Tensor): Promise<void>;
export async function saveNpy(...values: unknown[]): Promise<void> {
  const { path, x } = saveParameters(values);
  const parts = encodeArray("saveNpy", x);
  await writeAtomically("saveNpy", path, (file) => {
    for (const part of parts) file.write(part);
  });
}
const saveParameters = parameters("saveNpy", { path: operand(aPath), x: operand(aTensor) });
