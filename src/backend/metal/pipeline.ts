import { KernelCompileError } from "../../core/errors.ts";
import { writeBlock } from "./block.ts";
import type { MetalContext } from "./context.ts";
import { layouts } from "./layouts.ts";
import { dataTypeOf, encodeScalar, type ScalarValue } from "./scalars.ts";
import { readText } from "./status.ts";

/** The source of a library and its compilation options. */
export interface LibrarySource {
  /** Metal Shading Language. */
  source: string;
  /** Texts for `#include "name"` by name. */
  headers?: Record<string, string>;
  /** Preprocessor macros. */
  macros?: Record<string, string | number | boolean>;
  /** `"safe"` (default) preserves NaN and infinity; `"fast"` lets the compiler assume that there are none. */
  mathMode?: "safe" | "relaxed" | "fast";
  /** The variant of `exp`, `sin`, … without a namespace. Default `"precise"`. */
  mathFunctions?: "precise" | "fast";
  /** Language version; bfloat requires at least `"3.1"`. Default `"3.1"`. */
  languageVersion?: `${number}.${number}` | undefined;
  /** File name for messages. Default `program_source`. */
  fileName?: string;
}

/** An argument of a kernel. */
export interface PipelineBinding {
  name: string;
  /** The index of `[[buffer(index)]]` or `[[threadgroup(index)]]`. */
  index: number;
  kind: "buffer" | "threadgroup";
  access: "read" | "write" | "readwrite";
  /** Bytes per element. */
  dataSize: number;
  alignment: number;
  /** `MTLDataType`'s raw value of the element type. */
  dataType: number;
  /** False if a function constant disables it. */
  used: boolean;
}

/** The device's information about a compiled kernel. */
export interface PipelineInfo {
  /** The kernel's name. */
  function: string;
  /** Maximum threads per threadgroup. */
  maxTotalThreads: number;
  /** Threads per SIMD-group. */
  threadExecutionWidth: number;
  /** Bytes of threadgroup memory declared in the kernel. */
  staticThreadgroupBytes: number;
  /** The arguments, in the order of their indices. */
  bindings: PipelineBinding[];
}

interface FunctionInfo {
  name: string;
  constants: { name: string; index: number; type: number; required: boolean }[];
}

const mathModes = { safe: 0, relaxed: 1, fast: 2 } as const;
const mathFunctions = { precise: 0, fast: 1 } as const;

/** A compiled kernel with its function constants. */
export interface Pipeline {
  readonly handle: number;
  readonly info: PipelineInfo;
}

/**
 * Compiles a library and creates the pipeline of one of its kernels.
 *
 * @throws {KernelCompileError} `compileFailed`, `functionNotFound` or `constantMissing`.
 */
export function createPipeline(
  context: MetalContext,
  operation: string,
  source: LibrarySource,
  name: string,
  constants: Record<string, ScalarValue> = {},
): Pipeline {
  const library = createLibrary(context, operation, source);
  try {
    const values = encodeConstants(context, operation, library, name, constants);
    return finishPipeline(context, operation, library, name, values);
  } finally {
    context.native.orchard_release(library); // the pipeline retains what it needs
  }
}

/** Compiles a library. The caller must release the handle. */
export function createLibrary(context: MetalContext, operation: string, source: LibrarySource): number {
  const texts = (record: Record<string, string | number | boolean> = {}) => ({
    layout: layouts.namedText,
    items: Object.entries(record).map(([name, text]) => ({ name, text: String(text) })),
  });
  const block = writeBlock(layouts.libraryOptions, {
    languageVersion: languageVersion(source.languageVersion),
    mathMode: mathModes[source.mathMode ?? "safe"],
    mathFunctions: mathFunctions[source.mathFunctions ?? "precise"],
    name: source.fileName,
    source: source.source,
    headers: texts(source.headers),
    macros: texts(source.macros),
    label: operation,
  });
  const out = new BigUint64Array(1);
  context.call(operation, context.native.orchard_library_create(context.handle, block, block.length, out));
  return Number(out[0]);
}

function languageVersion(version = "3.1"): number {
  const [major = 3, minor = 1] = version.split(".").map(Number);
  return (major << 16) | minor;
}

function encodeConstants(
  context: MetalContext,
  operation: string,
  library: number,
  name: string,
  constants: Record<string, ScalarValue>,
) {
  if (Object.keys(constants).length === 0) return [];
  const json = readText(context.native, operation, (buffer, capacity, length) =>
    context.native.orchard_library_functions(library, buffer, capacity, length),
  );
  const known = (JSON.parse(json) as FunctionInfo[]).find((candidate) => candidate.name === name)?.constants ?? [];
  return Object.entries(constants).map(([key, value]) => {
    const constant = known.find((candidate) => candidate.name === key);
    if (!constant) {
      const names = known.map((candidate) => candidate.name).join(", ") || "none";
      throw new KernelCompileError(
        operation,
        "constantMissing",
        `${name} has no function constant ${key}; it has: ${names}`,
      );
    }
    const type = dataTypeOf(constant.type);
    const bytes = type
      ? encodeScalar(type, value)
      : `its type (MTLDataType ${constant.type}) can't be set from TypeScript`;
    if (typeof bytes === "string")
      throw new KernelCompileError(operation, "constantMissing", `function constant ${key}: ${bytes}`);
    return { name: key, index: constant.index, type: constant.type, value: bytes };
  });
}

/** Creates a kernel's pipeline, with function constants by name, or by index if the name is empty. */
export function finishPipeline(
  context: MetalContext,
  operation: string,
  library: number,
  name: string,
  constants: { name: string; index: number; type: number; value: Uint8Array }[],
): Pipeline {
  const block = writeBlock(layouts.pipelineOptions, {
    function: name,
    constants: { layout: layouts.constant, items: constants },
    label: operation,
  });
  const out = new BigUint64Array(1);
  context.call(operation, context.native.orchard_pipeline_create(library, block, block.length, out));
  const handle = Number(out[0]);
  const json = readText(context.native, operation, (buffer, capacity, length) =>
    context.native.orchard_pipeline_info(handle, buffer, capacity, length),
  );
  return { handle, info: JSON.parse(json) };
}
