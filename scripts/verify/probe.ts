/** What a probe is: a small program that asks the device whether an assumption of docs/apple.md holds. */

import type { BindingValue } from "../../src/backend/metal/arguments.ts";
import { type MetalContext, metalContext } from "../../src/backend/metal/context.ts";
import { metalKernel } from "../../src/backend/metal/kernel.ts";
import { createLibrary, type LibrarySource } from "../../src/backend/metal/pipeline.ts";
import { BackendError, KernelCompileError } from "../../src/core/errors.ts";
import { output } from "../../src/index.ts";

/** Returns what it saw, as evidence. @throws {Refuted} @throws {NotChecked} */
export type Probe = () => string;

/** The assumption does not hold: the message says what was seen. */
export class Refuted extends Error {}

/** This machine cannot tell: the message says why. */
export class NotChecked extends Error {}

/** The language version of a program; the default is that of the library's kernels. */
export type Version = `${number}.${number}`;

export const versions: readonly Version[] = ["3.1", "3.2", "4.0", "4.1"];

const header = "#include <metal_stdlib>\nusing namespace metal;\n";

/** The compiler's text where a program does not compile; undefined where it does. */
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

/** The software device compiles what a kernel needs; here all of a program counts. */
function whole<Result>(context: MetalContext, body: () => Result): Result {
  if (context.isSoftware) context.configure("whole", true);
  try {
    return body();
  } finally {
    if (context.isSoftware) context.configure("whole", false);
  }
}

/** Whether the system's compiler takes a version of the language. */
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

/** Programs by what they show. */
type Programs = Readonly<Record<string, string>>;

const firstLine = (text: string): string => text.split("\n").find((line) => /error/.test(line)) ?? text.split("\n")[0]!;

/** Every one of the programs must compile. */
export function expectCompiles(programs: Programs, version?: Version): string {
  for (const [name, program] of Object.entries(programs)) {
    const problem = diagnosticsOf(program, version);
    if (problem !== undefined) throw new Refuted(`${name}: refused: ${firstLine(problem)}`);
  }
  return `accepted: ${Object.keys(programs).join(", ")}`;
}

/** Every one of the programs must be refused. */
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
  /** The kernel's statements: they read the inputs by name, write `y`, and know `i`, `lane` and `t`, the index within
   * the threadgroup. */
  readonly body: string;
  /** What stands before the kernel. */
  readonly declarations?: string;
  readonly attributes?: string;
  readonly inputs?: Readonly<Record<string, Numbers>>;
  /** Zeros of the type and length of the result. */
  readonly result: Out;
  readonly threads: number;
  readonly threadgroup?: number;
  readonly options?: Pick<LibrarySource, "mathMode" | "mathFunctions" | "languageVersion">;
}

/** Runs one kernel and returns what it wrote. */
export function compute<Out extends Numbers>(computation: Computation<Out>): Out {
  const { result, threads, threadgroup = Math.min(threads, 32), inputs = {} } = computation;
  using kernel = kernelOf(computation);
  const bindings: Record<string, BindingValue> = { ...inputs, y: output(result.constructor as never, result.length) };
  const { outputs } = kernel.run(bindings, { grid: threads, threadgroup });
  return (outputs as unknown as { y: Out }).y;
}

/** The compiled kernel, for what the device says of it. */
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

/** The results must be these numbers; `what` names a result by its index. */
export function expectNumbers(
  got: ArrayLike<number | bigint>,
  expected: ArrayLike<number | bigint>,
  what: (index: number) => string = (index) => `result ${index}`,
): void {
  for (let index = 0; index < expected.length; index++)
    if (!Object.is(got[index], expected[index]))
      throw new Refuted(`${what(index)}: expected ${expected[index]}, got ${got[index]}`);
}

/** Numbers from 0 up to 1 that are the same in each run (a linear congruential generator). */
export function drawn(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** The bits of a number that half holds. */
export const halfBits = (value: number): number => new Uint16Array(new Float16Array([value]).buffer)[0]!;

/** The nearest bfloat, with ties to even. */
export function roundToBfloat(value: number): number {
  const bits = new Uint32Array(new Float32Array([value]).buffer)[0]!;
  const rounded = (bits + 0x7fff + ((bits >>> 16) & 1)) & 0xffff0000;
  return new Float32Array(new Uint32Array([rounded]).buffer)[0]!;
}
