import { noGrad } from "../../autograd/modes.ts";
import { getOrMake } from "../../core/collections.ts";
import { instanceOf } from "../../core/kinds.ts";
import { operand, parameters } from "../../core/parameters.ts";
import { formatShape } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { Module, summaryLayers } from "./module.ts";
import { formatSummary } from "./summary.ts";

const summaryParameters = parameters("summary", { model: operand(instanceOf(Module, "a module")) });

/**
 * Returns a table of a model's layers: names, classes, shapes of their tensors, element counts and bytes. With inputs,
 * it calls the model's `forward` once, in evaluation mode without gradients, and adds the shape of each module's
 * result. Training modes are restored afterwards.
 *
 * @param model any module
 * @param inputs the arguments of its `forward`. Without inputs, the table equals `model.summary()`
 *
 * @example
 * console.log(nn.summary(new nn.MLP({ width: 2, hidden: 8 }), zeros([32, 2])));
 * // layer     kind    result   state                  numbers  bytes
 * // ────────  ──────  ───────  ─────────────────────  ───────  ─────
 * // (itself)  MLP     [32, 2]                               0    0 B
 * // up        Linear  [32, 8]  weight [8, 2], bias [8]     24   96 B
 * // …
 *
 * @throws {ArgumentError} if `model` is not a module, and whatever its `forward` throws for these inputs.
 */
export function summary<Arguments extends readonly unknown[]>(
  model: Module<Arguments>,
  ...inputs: Arguments | []
): string;
export function summary(...values: unknown[]): string {
  const { model } = summaryParameters(values.slice(0, 1));
  const inputs = values.slice(1);
  return inputs.length === 0 ? model.summary() : formatSummary(summaryLayers(model), shapesOf(model, inputs));
}

/** Returns the shapes of each module's results in one call, by the module's name. */
function shapesOf(model: Module, inputs: readonly unknown[]): Map<string, string> {
  const named = [...model.namedModules()];
  const shapes = new Map<string, string[]>();
  const modes = named.map(([, module]) => module.training);
  const removes = named.map(([name, module]) =>
    module.registerForwardHook((_module, _inputs, output) => {
      getOrMake(shapes, name, () => []).push(shapeOf(output));
      return undefined;
    }),
  );
  try {
    model.eval();
    noGrad(() => tidy(() => void (model.forward as (...given: unknown[]) => unknown)(...inputs)));
  } finally {
    for (const remove of removes) remove();
    for (const [at, [, module]] of named.entries()) module.training = modes[at];
  }
  return new Map([...shapes].map(([name, shape]) => [name, timesEach(shape)]));
}

/** Formats the shape of a result, or the shapes of the tensors in an array or object; "" if there are none. */
function shapeOf(result: unknown): string {
  if (Tensor.isTensor(result)) return formatShape(result.shape);
  const held: unknown[] = typeof result === "object" && result !== null ? Object.values(result) : [];
  return held
    .filter((value) => Tensor.isTensor(value))
    .map(({ shape }) => formatShape(shape))
    .join(", ");
}

/** Joins the shapes of a module's calls, merging equal consecutive ones. */
function timesEach(shapes: readonly string[]): string {
  const runs: [shape: string, times: number][] = [];
  for (const shape of shapes) {
    const last = runs.at(-1);
    if (last?.[0] === shape) last[1]++;
    else runs.push([shape, 1]);
  }
  return runs.map(([shape, times]) => (times === 1 ? shape : `${times} × ${shape}`)).join("; ");
}
