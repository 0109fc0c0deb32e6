/** Reads the parts of a folder of `diffusers`: configs and weights. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { noGrad } from "../autograd/modes.ts";
import { ArgumentError, FileError, FileFormatError } from "../core/errors.ts";
import { withFileErrors } from "../io/file_errors.ts";
import { isJsonObject, parseJson } from "../io/json.ts";
import type { SafetensorsReader } from "../io/safetensors/file.ts";
import { openFor } from "../io/safetensors/open.ts";
import type { Module } from "../nn/layers/module.ts";
import { type Differences, StateDictError } from "../nn/layers/state_dict.ts";
import { checkKeys, hasNoEffectAnywhere } from "../nn/models/loading/config_fields.ts";
import { Settings } from "../nn/models/loading/settings.ts";
import { toDType } from "../ops/copy/cast.ts";
import { reshape } from "../ops/view/reshape.ts";
import { type FloatDType, isFloat } from "../tensor/dtype.ts";
import { elementCount, formatShape, type Shape, sameShape } from "../tensor/shape.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { keep } from "../tensor/tidy.ts";

const operation = "loadPipeline";

/** Reads a JSON file as settings. @throws {FileError} @throws {FileFormatError} */
export function settingsOf(...path: string[]): Settings {
  const file = join(...path);
  const text = withFileErrors(operation, file, () => readFileSync(file, "utf8"));
  const fail = (message: string) => new FileFormatError(operation, "invalidConfig", file, message);
  // Python writes infinities, which JSON lacks; an infinity that is a default counts as missing
  const finite = text.replaceAll(/(:\s*)(?:-?Infinity|NaN)(?=\s*[,}])/g, "$1null");
  const json = parseJson(finite, (_, message) => fail(`expected JSON: ${message}`));
  if (!isJsonObject(json)) throw fail("expected a JSON object");
  return new Settings(file, new Map(Object.entries(json)), "", operation);
}

/** The settings of a class: each is read, must have one of some values, or has no effect on results. */
export interface KnownSettings {
  readonly className: string;
  readonly read: readonly string[];
  /** The supported values of settings; null stands for a missing one. */
  readonly fixed: Readonly<Record<string, readonly unknown[]>>;
  readonly withoutEffect: readonly string[];
}

/**
 * Checks the settings of a class. @throws {ArgumentError} `unsupportedConfig` for unknown settings and unsupported
 * values, naming them.
 */
export function checkSettings(config: Settings, { className, read, fixed, withoutEffect }: KnownSettings): void {
  const isKnown = (key: string) =>
    key.startsWith("_") || [read, Object.keys(fixed), withoutEffect].some((list) => list.includes(key));
  checkKeys(config, (key) => isKnown(key) || hasNoEffectAnywhere(key), `is not a setting of ${className}`);
  for (const [name, values] of Object.entries(fixed)) {
    const got = config.get(name) ?? null;
    if (got !== null && !values.includes(got))
      throw config.refused(
        "unsupportedConfig",
        `expected ${name} to be ${JSON.stringify(values[0])}, the only supported value, got ${JSON.stringify(got)}`,
      );
  }
}

/** The names of files of weights, the preferred first. */
const files = [
  "diffusion_pytorch_model.safetensors",
  "diffusion_pytorch_model.safetensors.index.json",
  "model.safetensors",
  "model.safetensors.index.json",
  "diffusion_pytorch_model.fp16.safetensors",
  "model.fp16.safetensors",
];

/** Opens the weights of a folder. @throws {FileError} `notFound` */
export function openWeights(folder: string): SafetensorsReader {
  const found = files.map((name) => join(folder, name)).find((path) => existsSync(path));
  if (found !== undefined) return openFor(operation, found);
  throw new FileError(
    operation,
    "notFound",
    folder,
    `expected the folder to have ${files[0]} or ${files[2]}; weights in .bin files are not supported`,
  );
}

/** Parts of names in older files. */
const renamed: readonly (readonly [RegExp, string])[] = [
  [/^text_model\./, ""],
  [/(\.attentions\.\d+)\.query\./, "$1.to_q."],
  [/(\.attentions\.\d+)\.key\./, "$1.to_k."],
  [/(\.attentions\.\d+)\.value\./, "$1.to_v."],
  [/(\.attentions\.\d+)\.proj_attn\./, "$1.to_out.0."],
];

/** `down_blocks.0.conv_in.weight` → `downBlocks.0.convIn.weight` */
function propertyOf(name: string): string {
  const current = renamed.reduce((text, [pattern, by]) => text.replace(pattern, by), name);
  return current.replaceAll(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** Tensors of files that no parameter needs. */
const isIgnored = (name: string): boolean => /position_ids$|text_projection\.weight$|^logit_scale$/.test(name);

/** Whether shapes differ only in 1s at the end: kernels of 1×1 convolutions are weights of linear layers. */
const isSimilar = (a: Shape, b: Shape): boolean =>
  elementCount(a) === elementCount(b) && a.slice(0, 2).every((size, axis) => size === b[axis]);

/**
 * Sets the parameters of a model to the tensors of a folder, converted to a dtype. Weights that already have it stay in
 * the file, which is mapped into memory.
 *
 * @throws {StateDictError} listing missing names, unexpected names, and names with another shape.
 */
export async function fill(model: Module, folder: string, dtype: FloatDType): Promise<void> {
  using file = openWeights(folder);
  const modules = model.namedModules();
  const places = new Map(file.names.map((name) => [propertyOf(name), name]));
  const differences = { missing: [] as string[], different: [] as Differences["different"][number][] };
  const steps: (readonly [path: string, name: string, shape: Shape])[] = [];
  for (const [path, parameter] of model.namedParameters()) {
    const name = places.get(path);
    places.delete(path);
    if (name === undefined) differences.missing.push(path);
    else if (!isSimilar(file.info(name).shape, parameter.shape)) {
      const got = `${file.info(name).dtype}${formatShape(file.info(name).shape)}`;
      differences.different.push({ name, got: { describe: () => got }, expected: parameter });
    } else steps.push([path, name, parameter.shape]);
  }
  const unexpected = [...places.values()].filter((name) => !isIgnored(name));
  if (differences.missing.length + differences.different.length + unexpected.length > 0)
    throw new StateDictError(operation, model.constructor.name, { ...differences, unexpected });
  for (const [index, [path, name, shape]] of steps.entries()) {
    if (index % 16 === 0) await yieldToEventLoop();
    const [, above = "", end] = /^(?:(.*)\.)?([^.]+)$/.exec(path)!;
    Reflect.set(modules.get(above)!, end, parameterOf(file, name, shape, dtype));
  }
}

function parameterOf(file: SafetensorsReader, name: string, shape: Shape, dtype: FloatDType): Tensor {
  const read = file.tensor(name);
  if (!isFloat(read.dtype))
    throw new ArgumentError(operation, "notAFloat", `expected ${name} to be of a float dtype, got ${read.describe()}`);
  const value = noGrad(() => {
    const converted = toDType(read, dtype);
    return keep(sameShape(converted.shape, shape) ? converted : reshape(converted, [...shape]));
  });
  value.requiresGrad = true;
  return value;
}
