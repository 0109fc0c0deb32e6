/** Writes modules as ONNX models. */
import { noGrad } from "../../autograd/modes.ts";
import { type CapturedCall, captured } from "../../backend/capture.ts";
import { withBackend } from "../../backend/policy.ts";
import { describeValue } from "../../core/describe.ts";
import { ArgumentError } from "../../core/errors.ts";
import { anObject, aPath, instanceOf } from "../../core/kinds.ts";
import { named, operand, parameters, reading } from "../../core/parameters.ts";
import { writeAtomically } from "../../io/atomic.ts";
import { Module } from "../../nn/layers/module.ts";
import { clone } from "../../ops/copy/copy.ts";
import { cat } from "../../ops/join/cat.ts";
import { narrow } from "../../ops/view/slice.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Shape } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { encodeModel, type WrittenGraph } from "./encode.ts";
import { record } from "./operators.ts";
import { Recorder } from "./recorder.ts";
import { type Recording, resolved, type VaryingSize } from "./sizes.ts";
import { Unwritable } from "./unwritable.ts";

/** Options of {@link saveOnnx}. */
export interface SaveOnnxOptions {
  /** Where the file is written, atomically. Default: nowhere; the bytes are returned. */
  path?: string | undefined;
  /** Names of sizes that may vary, by the name of an input and its axis, as in `{ image: { 0: "batch" } }`. */
  axes?: Readonly<Record<string, Readonly<Record<number, string>>>> | undefined;
}

type Names = NonNullable<SaveOnnxOptions["axes"]>;
/** Arguments by the names of the inputs. */
type Example = Readonly<Record<string, Tensor>>;

/**
 * Writes a module's computation as an ONNX model of operator set 18. The module runs on the example in evaluation mode,
 * and each operation becomes a node, so conditions and loops of JavaScript have the outcome that they have for the
 * example. Parameters and buffers are constants with their names from `stateDict()`.
 *
 * @param module its `forward` takes one tensor for each input, in the order of the example, and returns a tensor, or
 *   tensors in an array or an object, which gives the names of the outputs. A single result is named `output`
 * @param example a tensor for each input, by name. An axis that may vary has at least 1 element
 * @returns the bytes of the file
 *
 * @example
 * const bytes = await io.saveOnnx(model, { image: zeros([1, 3, 32, 32]) }, { axes: { image: { 0: "batch" } } });
 *
 * @throws {ArgumentError} `unsupported`, with a list of all operations that can't be written.
 * @throws {FileError} if the file can't be written.
 */
export async function saveOnnx(
  module: Module<never>,
  example: Readonly<Record<string, Tensor>>,
  options?: SaveOnnxOptions,
): Promise<Uint8Array>;
export async function saveOnnx(...values: unknown[]): Promise<Uint8Array> {
  const given = saveParameters(values);
  const { module, path } = given;
  const example = exampleOf(given.example);
  const axes = axesOf(given.axes ?? {});
  const bytes = await encodeModel(graphOf(module, example, axes));
  if (path !== undefined) await writeAtomically("saveOnnx", path, async (file) => file.write(bytes));
  return bytes;
}

/** Reads each argument once, because reading a property may run the caller's code. */
const exampleOf = (given: Example): Example =>
  Object.fromEntries(
    reading("saveOnnx", () => Object.entries(given)).map(([name, tensor]) => {
      if (Tensor.isTensor(tensor)) return [name, tensor];
      const problem = `example ${name}: expected a tensor, got ${describeValue(tensor)}`;
      throw new ArgumentError("saveOnnx", "invalidOperand", problem);
    }),
  );

const axesOf = (given: Names): Names =>
  Object.fromEntries(
    reading("saveOnnx", () => Object.entries(given).map(([name, names]) => [name, Object.entries(names)] as const)).map(
      ([name, names]) => [name, Object.fromEntries(names)],
    ),
  );

const saveParameters = parameters("saveOnnx", {
  module: operand(instanceOf(Module, "a module")),
  example: operand(anObject<Example>("an object of tensors by name")),
  path: named(aPath),
  axes: named(anObject<Names>("an object of names of axes by input")),
});

function graphOf(module: Module<Tensor[]>, example: Example, axes: Names): WrittenGraph {
  const restore = module.modules().map((each) => [each, each.training] as const);
  try {
    module.eval();
    return tidy(() => evaluatedGraph(module, example, axes));
  } catch (error) {
    if (error instanceof Unwritable) throw unsupported(new Set([error.message]));
    throw error;
  } finally {
    for (const [each, training] of restore) each.training = training;
  }
}

/**
 * Sizes are enlarged by different odd numbers. With sizes of 1 or equal sizes, it is not clear on which size a number
 * depends.
 */
function evaluatedGraph(module: Module<Tensor[]>, example: Example, axes: Names): WrittenGraph {
  const varying = varyingSizes(example, axes);
  const distinct = varying.filter(({ name }, at) => varying.findIndex((each) => each.name === name) === at);
  const problems = new Set<string>();
  const recordWith = (more: readonly number[]): Traced & Recording => {
    const traced = recording(module, enlarged(example, varying, distinct, more), problems);
    const sizes = distinct.map((each, at) => example[each.input].shape[each.axis] + more[at]);
    return { ...traced, sizes, shapes: traced.outputs.map(({ shape }) => shape) };
  };
  const base = distinct.map((_, at) => 1 + 2 * at);
  const first = recordWith(base);
  if (problems.size > 0) throw unsupported(problems);
  const others = base.map((size, at) => recordWith(base.with(at, size + 1)));
  const last = distinct.length > 0 ? recordWith(base.map((size) => size + 4)) : undefined;
  if (problems.size > 0) throw unsupported(problems);
  const { nodes, constants, shapes } = resolved({ first, others, last }, distinct);
  const inputs = Object.entries(example).map(([name, { dtype, shape }]) => ({
    name,
    dtype,
    shape: shape.map((size, axis) => axes[name]?.[axis] ?? size),
  }));
  const outputs = first.outputs.map(({ name, dtype, isUnsized }, at) => ({
    name,
    dtype,
    shape: isUnsized ? shapes[at].map((_, axis) => `${name}_${axis}`) : shapes[at],
  }));
  return { nodes, constants, inputs, outputs };
}

const unsupported = (problems: ReadonlySet<string>): ArgumentError =>
  new ArgumentError(
    "saveOnnx",
    "unsupported",
    `these parts of the module can't be written: ${[...problems].sort().join("; ")}. docs/onnx.md lists what can`,
  );

function varyingSizes(example: Example, axes: Names): VaryingSize[] {
  return Object.entries(axes).flatMap(([input, names]) =>
    Object.entries(names).map(([axis, name]) => {
      const size = example[input]?.shape[Number(axis)];
      if (size === undefined)
        throw new ArgumentError(
          "saveOnnx",
          "unknownAxis",
          `axes: the example has no axis ${axis} of an input "${input}"`,
        );
      if (size === 0) throw new ArgumentError("saveOnnx", "emptyAxis", `axes: axis ${axis} of "${input}" is empty`);
      return { name, input, axis: Number(axis) };
    }),
  );
}

/** Returns the example enlarged along the axes that may vary, by repeating the first elements. */
function enlarged(
  example: Example,
  varying: readonly VaryingSize[],
  distinct: readonly VaryingSize[],
  more: readonly number[],
): Example {
  const result: Record<string, Tensor> = { ...example };
  for (const { name, input, axis } of varying) {
    const given = result[input];
    const parts = Array.from({ length: more[distinct.findIndex((each) => each.name === name)] }, () =>
      narrow(given, axis, 0, 1),
    );
    result[input] = cat([given, ...parts], axis);
  }
  return result;
}

interface Traced {
  readonly recorder: Recorder;
  readonly outputs: readonly {
    readonly name: string;
    readonly dtype: DType;
    readonly shape: Shape;
    /** Whether the shape depends on values. */
    readonly isUnsized: boolean;
  }[];
}

/** Runs the module and records its calls. Adds operations without an ONNX equivalent to `problems`. */
function recording(module: Module<Tensor[]>, example: Example, problems: Set<string>): Traced {
  const recorder = new Recorder(module.stateDict());
  const copies = Object.entries(example).map(([name, tensor]) => [name, clone(tensor)] as const);
  for (const [name, tensor] of copies) recorder.set(tensor, name);
  const reported = (body: () => void): boolean => {
    try {
      body();
      return true;
    } catch (error) {
      if (!(error instanceof Unwritable)) throw error;
      if (error.message !== "") problems.add(error.message);
      return false;
    }
  };
  const receive = (call: CapturedCall): void => {
    if (reported(() => record(recorder, call))) return;
    for (const output of call.outputs) recorder.refuse(output, "");
  };
  const run = () => module.forward(...copies.map(([, tensor]) => tensor));
  const results = namedResults(withBackend("cpu", () => noGrad(() => captured(receive, run))));
  for (const [name, tensor] of results) reported(() => recorder.output(name, tensor));
  const outputs = results.map(([name, tensor]) => {
    const { dtype, shape } = tensor;
    return { name, dtype, shape, isUnsized: recorder.isUnsized(tensor) };
  });
  return { recorder, outputs };
}

/** Returns the tensors of a module's result with the names of the outputs. */
function namedResults(result: unknown): [string, Tensor][] {
  if (Tensor.isTensor(result)) return [["output", result]];
  const entries: [string, unknown][] = Array.isArray(result)
    ? result.map((each, at) => [`output_${at}`, each])
    : Object.entries(result ?? {}).filter(([, value]) => value !== undefined && value !== null);
  const tensors = entries.filter((entry): entry is [string, Tensor] => Tensor.isTensor(entry[1]));
  if (tensors.length > 0 && tensors.length === entries.length) return tensors;
  throw new ArgumentError(
    "saveOnnx",
    "invalidResult",
    `expected the module to return tensors, got ${describeValue(result)}; wrap it in a module that returns tensors`,
  );
}
