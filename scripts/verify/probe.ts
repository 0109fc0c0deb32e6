/** A probe: a small program that tests on the device whether an assumption of docs/apple.md holds. */

import type { BindingValue } from "../../src/backend/metal/arguments.ts";
import { type MetalContext, metalContext } from "../../src/backend/metal/context.ts";
import { metalKernel } from "../../src/backend/metal/kernel.ts";
import { createLibrary, type LibrarySource } from "../../src/backend/metal/pipeline.ts";
import { BackendError, KernelCompileError } from "../../src/core/errors.ts";
import { output } from "../../src/index.ts";

/** Returns its observation as evidence. @throws {Refuted} @throws {NotChecked} */
export type Probe = () => string;

/** The assumption does not hold; the message has the observation. */
export class Refuted extends Error {}

/** This machine can't decide; the message has the reason. */
export class NotChecked extends Error {}

/** The language version of a program. Default: that of the library's kernels. */
export type Version = `${number}.${number}`;

export const versions: readonly Version[] = ["3.1", "3.2", "4.0", "4.1"];

const header = "#include <metal_stdlib>\nusing namespace metal;\n";

/** Returns the compiler's output if a program does not compile, else undefined. */
export function diagnosticsOf(program: string, languageVersion?: Version): string | undefined {
  const context = metalContext();
  return whole(context, () => {
    try {
      const source = { source: header + program, languageVersion, fileName: "probe.metal" };
      context.native.orchard_release(createLibrary(context, "probe", source));
      return undefined;
    } catch (error) {
      if (error instanceof KernelCompileError) return error.diagnostics;
      throw error;
    }
  });
}

/** The software device compiles only what a kernel needs; here the whole program counts. */
function whole<Result>(context: MetalContext, body: () => Result): Result {
  if (context.isSoftware) context.configure("whole", true);
  try {
    return body();
  } finally {
    if (context.isSoftware) context.configure("whole", false);
  }
}

/** Whether the system's compiler supports a language version. */
export function knowsVersion(version: Version): boolean {
  try {
    return diagnosticsOf("kernel void probe(device float *y [[buffer(0)]]) { y[0] = 1; }", version) === undefined;
  } catch (error) {
    if (error instanceof BackendError && error.message.includes("is not known here")) return false;
    throw error;
  }
}

export function requireVersion(version: Version): void {
  if (!knowsVersion(version)) throw new NotChecked(`this system's compiler does not know Metal ${version}`);
}

/** Programs by the feature they demonstrate. */
type Programs = Readonly<Record<string, string>>;

const firstLine = (text: string): string => text.split("\n").find((line) => /error/.test(line)) ?? text.split("\n")[0];

/** Every one of the programs must compile. */
export function expectCompiles(programs: Programs, version?: Version): string {
  for (const [name, program] of Object.entries(programs)) {
    const problem = diagnosticsOf(program, version);
    if (problem !== undefined) throw new Refuted(`${name}: refused: ${firstLine(problem)}`);
  }
  return `accepted: ${Object.keys(programs).join(", ")}`;
}

/** Every one of the programs must be rejected. */
export function expectRefused(programs: Programs, version?: Version): string {
  for (const [name, program] of Object.entries(programs))
    if (diagnosticsOf(program, version) === undefined) throw new Refuted(`${name}: compiles`);
  return `refused: ${Object.keys(programs).join(", ")}`;
}

type Numbers = Float32Array | Int32Array | Uint32Array | Uint16Array | BigUint64Array;

const typeOf = (array: Numbers): string => {
  if (array instanceof Float32Array) return "float";
  if (array instanceof Int32Array) return "int";
  if (array instanceof Uint32Array) return "uint";
  return array instanceof Uint16Array ? "ushort" : "ulong";
};

export interface Computation<Out extends Numbers> {
  /**
   * The kernel's statements: they read the inputs by name, write `y`, and can use `i`, `lane` and `t`, the index within
   * the threadgroup.
   */
  readonly body: string;
  /** Declarations before the kernel. */
  readonly declarations?: string;
  readonly attributes?: string;
  readonly inputs?: Readonly<Record<string, Numbers>>;
  /** Zeros with the type and length of the result. */
  readonly result: Out;
  readonly threads: number;
  readonly threadgroup?: number;
  readonly options?: Pick<LibrarySource, "mathMode" | "mathFunctions" | "languageVersion">;
}

/** Runs a kernel and returns its result. */
export function compute<Out extends Numbers>(computation: Computation<Out>): Out {
  const { result, threads, threadgroup = Math.min(threads, 32), inputs = {} } = computation;
  using kernel = kernelOf(computation);
  const bindings: Record<string, BindingValue> = { ...inputs, y: output(result.constructor as never, result.length) };
  const { outputs } = kernel.run(bindings, { grid: threads, threadgroup });
  return (outputs as unknown as { y: Out }).y;
}

/** Compiles the kernel, for the device's information about it. */
export function kernelOf({ body, declarations = "", attributes = "", inputs = {}, result, options }: KernelParts) {
  const names = Object.entries(inputs).map(
    ([name, array], index) => `device const ${typeOf(array)} *${name} [[buffer(${index})]],`,
  );
  const source = `${header}${declarations}
${attributes} kernel void probe(${names.join(" ")} device ${typeOf(result)} *y [[buffer(${names.length})]],
    uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]],
    uint t [[thread_position_in_threadgroup]]) {
${body}
}`;
  return metalKernel({ name: "probe", source, ...options });
}

type KernelParts = Pick<Computation<Numbers>, "body" | "declarations" | "attributes" | "inputs" | "result" | "options">;

/** Checks that the results are these numbers; `what` names a result by its index. */
export function expectNumbers(
  got: ArrayLike<number | bigint>,
  expected: ArrayLike<number | bigint>,
  what: (index: number) => string = (index) => `result ${index}`,
): void {
  for (let index = 0; index < expected.length; index++)
    if (!Object.is(got[index], expected[index]))
      throw new Refuted(`${what(index)}: expected ${expected[index]}, got ${got[index]}`);
}

/** Returns reproducible numbers in [0, 1) (a linear congruential generator). */
export function drawn(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Returns the bits of a number that half can represent. */
export const halfBits = (value: number): number => new Uint16Array(new Float16Array([value]).buffer)[0];

/** Returns the nearest bfloat, ties to even. */
export function roundToBfloat(value: number): number {
  const bits = new Uint32Array(new Float32Array([value]).buffer)[0];
  const rounded = (bits + 0x7fff + ((bits >>> 16) & 1)) & 0xffff0000;
  return new Float32Array(new Uint32Array([rounded]).buffer)[0];
}
