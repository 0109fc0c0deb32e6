/** Which primitives can be written, and as which nodes of operator set 18. */
import type { CapturedCall } from "../../backend/capture.ts";
import { bytesOf } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { elementTypes } from "./encode.ts";
import { elementwise, Formulas } from "./formulas.ts";
import { layers } from "./layers.ts";
import { rope } from "./position.ts";
import type { Recorder } from "./recorder.ts";
import { reductions } from "./reductions.ts";
import { selection } from "./selection.ts";
import { special } from "./special.ts";
import { Unwritable } from "./unwritable.ts";
import type { Writer, Writers } from "./writer.ts";

const copy: Writer = (recorder, { inputs: [x], outputs: [y] }) => {
  const unsized = x.dtype === y.dtype ? recorder.unsizedName(x) : undefined;
  if (unsized !== undefined) {
    recorder.setUnsized(y, unsized);
    return [];
  }
  const name = recorder.name(x);
  const cast = x.dtype === y.dtype ? name : recorder.node("Cast", [name], { to: elementTypes[y.dtype] });
  return `${x.shape}` === `${y.shape}` ? cast : recorder.node("Expand", [cast, { sizes: y.shape }]);
};

/** alpha · a · b + beta · input */
const product: Writer = (recorder, { inputs: [a, b, input], attributes }) => {
  const { alpha, beta } = attributes as { alpha: number; beta: number };
  const graph = new Formulas(recorder, a.dtype);
  const all = graph.of("MatMul", recorder.name(a), recorder.name(b));
  const scaled = alpha === 1 ? all : graph.of("Mul", all, alpha);
  if (!input) return scaled;
  const name = recorder.broadcastName(input);
  return graph.of("Add", scaled, beta === 1 ? name : graph.of("Mul", name, beta));
};

const writers: Writers = {
  ...elementwise,
  ...reductions,
  ...selection,
  ...layers,
  ...special,
  copy,
  rope,
  matmul: product,
  linear: product,
  addmm: product,
};

/** The names of the primitives that can be written, sorted. */
export const writableNames = (): string[] => Object.keys(writers).sort();

/** Primitives of random numbers. A file would contain the numbers that were drawn during the recording. */
const RANDOM: ReadonlySet<string> = new Set(["bernoulli", "dropout", "multinomial", "random", "randperm"]);

/**
 * Records a call. Calls that do not depend on the inputs are computed, and become constants.
 *
 * @throws {Unwritable}
 */
export function record(recorder: Recorder, call: CapturedCall): void {
  const { primitive, inputs, outputs } = call;
  if (RANDOM.has(primitive)) throw new Unwritable("random numbers");
  const [target] = outputs;
  const isVariable = inputs.some((x) => recorder.isVariable(x));
  if (target && isPart(target)) {
    const isCopied = isVariable || primitive === "copy";
    recorder.write(target, isCopied ? resultsOf(recorder, call)[0]! : filled(recorder, call));
    return;
  }
  if (!isVariable) {
    const value = fillingOf(call);
    if (value !== undefined) recorder.fill(target, value);
    else for (const output of outputs) recorder.compute(output);
    return;
  }
  const names = resultsOf(recorder, call);
  for (const [at, output] of outputs.entries())
    if (names[at] !== undefined) recorder.set(output, names[at]);
    else if (!recorder.isUnsized(output)) recorder.refuse(output, `result ${at + 1} of ${primitive}`);
}

/** Whether a tensor covers a part of its memory only. */
const isPart = (x: Tensor): boolean =>
  x.size > 0 && (x.offset !== 0 || x.size * bytesOf(x.dtype) < x.storage.memory.byteLength);

/** Returns the number that a call sets all elements to. */
function fillingOf({ primitive, inputs: [source], attributes }: CapturedCall): number | undefined {
  if (primitive === "fill") return Number((attributes as { value: number | boolean | bigint }).value);
  return primitive === "copy" && source.size === 1 ? Number(source.dataSync()[0]) : undefined;
}

function filled(recorder: Recorder, call: CapturedCall): string {
  const [target] = call.outputs;
  const value = fillingOf(call);
  if (value === undefined) throw new Unwritable(`${call.primitive} into a part of a tensor`);
  return recorder.node("Expand", [recorder.scalar(value, target.dtype), { sizes: target.shape }]);
}

function resultsOf(recorder: Recorder, call: CapturedCall): readonly (string | undefined)[] {
  const write = Object.hasOwn(writers, call.primitive) ? writers[call.primitive] : undefined;
  if (!write) throw new Unwritable(call.primitive);
  const names = write(recorder, call);
  return typeof names === "string" ? [names] : names;
}
