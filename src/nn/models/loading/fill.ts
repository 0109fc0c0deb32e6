/** Fills a model with the tensors of a file. */
import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { noGrad } from "../../../autograd/modes.ts";
import { toDType } from "../../../ops/copy/cast.ts";
import { contiguous } from "../../../ops/copy/copy.ts";
import { zeros } from "../../../ops/creation/full.ts";
import { add } from "../../../ops/elementwise/arithmetic.ts";
import { expand } from "../../../ops/view/expand.ts";
import { transpose } from "../../../ops/view/permute.ts";
import { reshape } from "../../../ops/view/reshape.ts";
import { narrow, slice } from "../../../ops/view/slice.ts";
import { scaleDTypes } from "../../../quant/formats.ts";
import { quantize, quantizeGgml } from "../../../quant/quantize.ts";
import { QuantizedTensor } from "../../../quant/quantized_tensor.ts";
import { isDType } from "../../../tensor/dtype.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { keep } from "../../../tensor/tidy.ts";
import type { Initialization, Initializer } from "../../layers/initialization.ts";
import { Linear } from "../../layers/linear.ts";
import type { Module } from "../../layers/module.ts";
import { QuantizedEmbedding } from "../../quantized/embedding.ts";
import { QuantizedLinear } from "../../quantized/linear.ts";
import type { Change } from "./names.ts";
import type { Loadable, Step, Storing } from "./plan.ts";
import { readAhead } from "./read_ahead.ts";
import type { WeightSource } from "./source.ts";

const nothing: Initializer = (shape, { dtype = "float32" }) => noGrad(() => expand(zeros([1], { dtype }), [...shape]));

/** Parameters that are views of a single element: a model that is about to be filled takes no memory. */
export const noMemory: Initialization = {
  weight: nothing,
  residual: nothing,
  bias: () => nothing,
  embedding: nothing,
};

/**
 * Executes a loading plan, one parameter at a time. The event loop runs in between.
 *
 * @param isReadAhead whether pages of mapped weights are read in advance
 */
export async function fill(
  model: Loadable,
  steps: readonly Step[],
  source: WeightSource,
  { isReadAhead, ...storing }: Storing & { readonly isReadAhead: boolean },
): Promise<void> {
  const modules = model.namedModules();
  const read = reader(source);
  for (const [index, step] of steps.entries()) {
    if (index % 16 === 0) await yieldToEventLoop();
    const value = noGrad(() => parameterOf(step, read(step), storing));
    if (isReadAhead && step.isMapped && isReadWhole(model, step)) readAhead(value);
    if (QuantizedTensor.isQuantized(value)) replaceLayer(modules, step, value, storing);
    else {
      value.requiresGrad = true;
      Reflect.set(modules.get(step.path)!, step.end, value);
    }
  }
}

/** Embeddings are read row by row, unless they are also the output head (tied weights). */
const isReadWhole = ({ usesWholeEmbedding }: Loadable, { path }: Step): boolean =>
  usesWholeEmbedding || !/Embedding$|^embeddings\./.test(path);

/** Replaces a layer by a quantized one, under the same path, so that a bias that follows finds the new layer. */
function replaceLayer(
  modules: Map<string, Module>,
  { path }: Step,
  weight: QuantizedTensor,
  { precision }: Storing,
): void {
  const [, above = "", name] = /^(?:(.*)\.)?([^.]+)$/.exec(path)!;
  const layer = modules.get(path);
  const replaced = layer instanceof Linear ? new QuantizedLinear(weight, layer.bias) : new QuantizedEmbedding(weight);
  replaced.precision = precision;
  replaced.training = false;
  Reflect.set(modules.get(above)!, name, replaced);
  modules.set(path, replaced);
}

/** Reads the tensors of steps. A tensor that holds several parameters is read once. */
function reader(source: WeightSource): (step: Step) => Tensor | QuantizedTensor {
  let last:
    | {
        readonly name: string;
        readonly value: Tensor | QuantizedTensor;
        /** Whether the parameters are copies of parts of the tensor. */
        readonly isCopied: boolean;
      }
    | undefined;
  return ({ name, change }) => {
    if (change?.kind !== "part") return source.read(name);
    if (last?.name !== name) {
      if (last?.isCopied) last.value.dispose();
      last = { name, value: source.read(name), isCopied: isRearranged(change) };
    }
    return last.value;
  };
}

function parameterOf(step: Step, read: Tensor | QuantizedTensor, { dtype }: Storing): Tensor | QuantizedTensor {
  if (QuantizedTensor.isQuantized(read)) return quantizedPart(read, step.change, dtype);
  const { becomes } = step;
  const changed = step.change?.kind === "reshaped" ? reshape(read, [...step.shape]) : changedBy(read, step.change);
  if (isDType(becomes)) {
    const converted = changed.dtype === becomes ? ownRows(changed, step.change) : toDType(changed, becomes);
    const value = step.change?.kind === "plusOne" ? add(converted, 1) : converted;
    if (step.change?.kind !== "part" && value.storage !== read.storage) read.dispose();
    return keep(value);
  }
  const quantized = typeof becomes === "string" ? quantizeGgml(changed, becomes) : quantize(changed, becomes);
  if (step.change?.kind !== "part") read.dispose();
  return retyped(quantized, dtype);
}

/** Returns a view of the tensor with the change applied. */
function changedBy(read: Tensor, change: Change | undefined): Tensor {
  if (change?.kind === "transposed") return read.rank === 2 ? transpose(read, 0, 1) : read;
  if (change?.kind === "heads") return rowsOfHeads(read, change);
  if (change?.kind === "after") return narrow(read, 0, change.first, read.shape[0] - change.first);
  if (change?.kind !== "part") return read;
  const { joined } = change;
  const item = part(joined === undefined ? read : reshape(read, [joined, -1, ...read.shape.slice(1)]), change.index);
  const matrix = change.transposed && item.rank === 2 ? transpose(item, 0, 1) : item;
  return someRows(matrix, change);
}

/** Returns the rows of a checkpoint's weight that belong to a parameter. */
function someRows(x: Tensor, { alternate, half }: Change & { readonly kind: "part" }): Tensor {
  if (half !== undefined) return narrow(x, 0, (half * x.shape[0]) / 2, x.shape[0] / 2);
  return alternate === undefined ? x : alternateRows(x, alternate);
}

/** Returns every second row, from `first` on. */
const alternateRows = (x: Tensor, first: 0 | 1): Tensor => slice(x, { dim: 0, start: first, step: 2 });

/** [groups · of · headWidth, …] → [groups · count · headWidth, …] */
function rowsOfHeads(x: Tensor, { of, first, count, headWidth }: Change & { readonly kind: "heads" }): Tensor {
  const others = x.shape.slice(1);
  const groups = reshape(x, [-1, of * headWidth, ...others]);
  return reshape(narrow(groups, 1, first * headWidth, count * headWidth), [-1, ...others]);
}

const ownRows = (x: Tensor, change: Change | undefined): Tensor =>
  change?.kind === "transposed" || change?.kind === "heads" || change?.kind === "after" || isRearranged(change)
    ? contiguous(x)
    : x;

const isRearranged = (change: Change | undefined): boolean =>
  change?.kind === "part" &&
  (change.transposed === true || change.alternate !== undefined || change.half !== undefined);

const part = (x: Tensor, index: number): Tensor => reshape(narrow(x, 0, index, 1), [...x.shape.slice(1)]);

/** In block formats, a range of rows is a range of bytes, so a part is a view. */
function quantizedPart(read: QuantizedTensor, change: Change | undefined, dtype: string): QuantizedTensor {
  if (change?.kind !== "part") return retyped(read, dtype);
  const whole = part(read.parts.packed, change.index);
  const isWhole = change.alternate === undefined && change.half === undefined;
  const packed = isWhole ? whole : contiguous(someRows(whole, change));
  const [rows, ...columns] = read.shape.slice(1);
  const shape = [isWhole ? rows : rows / 2, ...columns];
  return retyped(new QuantizedTensor(read.format, shape, read.dtype, { packed: keep(packed) }), dtype);
}

/** Returns the same packed data, to be dequantized to the dtype of activations. */
function retyped(weight: QuantizedTensor, dtype: string): QuantizedTensor {
  const wanted = scaleDTypes.find((each) => each === dtype) ?? "float32";
  return wanted === weight.dtype ? weight : new QuantizedTensor(weight.format, weight.shape, wanted, weight.parts);
}
