/** Quantized tensors built from existing parts, such as those of a file. */

import { noGrad } from "../autograd/modes.ts";
import { lastElement } from "../core/collections.ts";
import { ArgumentError, DTypeError, ShapeError } from "../core/errors.ts";
import { choice, either, flag } from "../core/kinds.ts";
import { type Kind, named, operand, parameters, required, structure } from "../core/parameters.ts";
import { contiguous } from "../ops/copy/copy.ts";
import { aTensor } from "../tensor/kinds.ts";
import type { Shape } from "../tensor/shape.ts";
import { formatShape, sameShape } from "../tensor/shape.ts";
import { Tensor } from "../tensor/tensor.ts";
import {
  type AffineFormat,
  affineBits,
  blockFormat,
  formatName,
  ggmlFormats,
  groupSizes,
  type QuantizedFormat,
  type ScaleDType,
  scaleDTypes,
} from "./formats.ts";
import { oneOf } from "./quantize.ts";
import { type QuantizedParts, QuantizedTensor } from "./quantized_tensor.ts";

/** The affine format as an argument. */
export interface AffineOptions extends Omit<AffineFormat, "symmetric"> {
  /** Whether there are no biases: W = (q − 2^(bits − 1)) · scale. Default false. */
  readonly symmetric?: boolean | undefined;
}

/** Options of {@link quantizedFromParts}. */
export interface FromPartsOptions {
  /** The dtype to which the tensor is dequantized. Default the dtype of scales; float32 for blocks. */
  dtype?: ScaleDType | undefined;
}

/** Accepts bits and a group size. */
export const affineFormat: Kind<AffineFormat> = structure({
  bits: required(oneOf(...affineBits)),
  groupSize: required(oneOf(...groupSizes)),
  symmetric: named(flag, false),
});

/** Accepts the name of a block format, or bits and a group size. */
export const aFormat: Kind<QuantizedFormat> = either<[Kind<QuantizedFormat>, Kind<QuantizedFormat>]>(
  choice(...ggmlFormats),
  affineFormat,
);

const someParts = structure({
  packed: required(aTensor),
  scales: named(aTensor),
  biases: named(aTensor),
});

const fromPartsParameters = parameters("quantizedFromParts", {
  format: operand(aFormat),
  parts: operand(someParts),
  dtype: named(choice(...scaleDTypes)),
});

/**
 * Builds a quantized tensor from its parts, such as the three of a layer in MLX's files. Dense parts are not copied:
 * they share memory with the result, so do not change them in place. The values of scales are not checked.
 *
 * @param format the name of a block format, or `{ bits, groupSize, symmetric? }`
 * @param parts blocks: `packed`, uint8 […, bytes of a row]. Affine: `packed`, uint32 […, columns · bits / 32], and
 * `scales` and `biases`, of one float dtype, […, columns / groupSize]; no `biases` if the format is symmetric
 * @returns a tensor of shape […, columns]
 *
 * @example
 * using file = io.openSafetensors("mlx-model");
 * const [packed, scales, biases] = ["weight", "scales", "biases"].map((part) => file.tensor(`layers.0.gate.${part}`));
 * const w = quantizedFromParts({ bits: 4, groupSize: 64 }, { packed, scales, biases });
 *
 * @throws {ArgumentError} `missingPart`, `unexpectedPart`, and for an unknown format. @throws {DTypeError}
 * `wrongDType`, for parts of other dtypes. @throws {ShapeError} `wrongColumns`, if a row is not a whole number of
 * blocks or groups; `shapesDiffer`, for scales or biases of a different shape. @throws {DisposedError}
 */
export function quantizedFromParts(
  format: QuantizedFormat | AffineOptions,
  parts: QuantizedParts,
  options?: FromPartsOptions,
): QuantizedTensor;
export function quantizedFromParts(...values: unknown[]): QuantizedTensor {
  const operation = "quantizedFromParts";
  const { format, parts, dtype } = fromPartsParameters(values);
  const problem = problemOf(format, parts);
  if (problem !== undefined) throw new problem.Class(operation, problem.code, problem.message);
  return ofParts(format, parts, dtype);
}

/**
 * Returns the names of the scales and biases of a weight, as in MLX: `layer.scales` and `layer.biases` of
 * `layer.weight`.
 */
export function partNames(name: string): { readonly scales: string; readonly biases: string } {
  const stem = name === "weight" ? "" : name.endsWith(".weight") ? name.slice(0, -"weight".length) : `${name}.`;
  return { scales: `${stem}scales`, biases: `${stem}biases` };
}

/** Returns the parts of a quantized tensor with their names; absent parts are left out. */
export function namedParts(name: string, { parts }: QuantizedTensor): (readonly [name: string, part: Tensor])[] {
  const { scales, biases } = partNames(name);
  const all = [[name, parts.packed] as const, [scales, parts.scales] as const, [biases, parts.biases] as const];
  return all.flatMap(([key, part]) => (part === undefined ? [] : [[key, part] as const]));
}

/** An error found in the parts of a quantized tensor. */
export interface PartsProblem {
  readonly Class: typeof ArgumentError | typeof DTypeError | typeof ShapeError;
  readonly code: string;
  readonly message: string;
}

/** Checks the parts of a format; undefined if they are valid. */
export const problemOf = (format: QuantizedFormat, parts: QuantizedParts): PartsProblem | undefined =>
  typeof format === "string" ? problemOfBlocks(format, parts) : problemOfGroups(format, parts);

function problemOfBlocks(
  format: Extract<QuantizedFormat, string>,
  { packed, scales, biases }: QuantizedParts,
): PartsProblem | undefined {
  const { bytes } = blockFormat(format);
  if (scales !== undefined) return unexpected("scales", format);
  if (biases !== undefined) return unexpected("biases", format);
  if (packed.dtype !== "uint8") return wrongDType("packed", "uint8", packed, format);
  return wholeRows(format, packed, "bytes", bytes);
}

function problemOfGroups(format: AffineFormat, { packed, scales, biases }: QuantizedParts): PartsProblem | undefined {
  const { bits, groupSize, symmetric } = format;
  if (scales === undefined) return missing("scales", format);
  if (symmetric && biases !== undefined) return unexpected("biases", format);
  if (!symmetric && biases === undefined) return missing("biases", format);
  if (packed.dtype !== "uint32") return wrongDType("packed", "uint32", packed, format);
  if (!scaleDTypes.some((each) => each === scales.dtype))
    return wrongDType("scales", scaleDTypes.join(", "), scales, format);
  if (biases !== undefined && biases.dtype !== scales.dtype)
    return wrongDType("biases", `${scales.dtype}, like scales`, biases, format);
  const words = (groupSize / 32) * bits;
  const problem = wholeRows(format, packed, "words", words);
  if (problem !== undefined) return problem;
  const expected = [...packed.shape.slice(0, -1), lastElement(packed.shape) / words];
  for (const [name, part] of [["scales", scales] as const, ["biases", biases] as const])
    if (part !== undefined && !sameShape(part.shape, expected))
      return {
        Class: ShapeError,
        code: "shapesDiffer",
        message: `expected ${name} of shape ${formatShape(expected)} for ${formatName(format)}, got ${part.describe()}`,
      };
  return undefined;
}

const missing = (name: string, format: QuantizedFormat): PartsProblem => ({
  Class: ArgumentError,
  code: "missingPart",
  message: `expected ${name} for ${formatName(format)}, got none`,
});

const unexpected = (name: string, format: QuantizedFormat): PartsProblem => ({
  Class: ArgumentError,
  code: "unexpectedPart",
  message: `expected no ${name} for ${formatName(format)}, got some`,
});

const wrongDType = (name: string, expected: string, part: Tensor, format: QuantizedFormat): PartsProblem => ({
  Class: DTypeError,
  code: "wrongDType",
  message: `expected ${name} of ${formatName(format)} to be ${expected}, got ${part.describe()}`,
});

function wholeRows(format: QuantizedFormat, packed: Tensor, unit: string, multiple: number): PartsProblem | undefined {
  if (packed.rank > 0 && lastElement(packed.shape) % multiple === 0) return undefined;
  return {
    Class: ShapeError,
    code: "wrongColumns",
    message:
      `expected a multiple of ${multiple} ${unit} along the last axis for ${formatName(format)}, ` +
      `got ${packed.describe()}`,
  };
}

/** Builds a quantized tensor from checked parts. It shares their memory. */
export function ofParts(format: QuantizedFormat, parts: QuantizedParts, dtype?: ScaleDType): QuantizedTensor {
  const { packed, scales, biases } = parts;
  const scaleDType = dtype ?? scaleDTypes.find((each) => each === scales?.dtype) ?? "float32";
  return new QuantizedTensor(format, shapeOf(format, packed.shape), scaleDType, {
    packed: shared(packed),
    scales: scales && shared(scales),
    biases: biases && shared(biases),
  });
}

function shapeOf(format: QuantizedFormat, packed: Shape): Shape {
  const last = lastElement(packed);
  const columns =
    typeof format === "string"
      ? (last / blockFormat(format).bytes) * blockFormat(format).values
      : (last / format.bits) * 32;
  return [...packed.slice(0, -1), columns];
}

/** A new tensor that shares the memory, so that the caller may dispose of the given one; a copy if it is strided. */
function shared(part: Tensor): Tensor {
  const dense = noGrad(() => contiguous(part));
  if (dense !== part) return dense;
  const { storage, dtype, shape, strides, offset } = part;
  return new Tensor(storage, dtype, shape, strides, offset);
}
