/** Invalid calls of operations: missing graphs, and elements that repeat. */
import { AutogradError } from "../../../src/autograd/node.ts";
import { ArgumentError } from "../../../src/core/errors.ts";
import * as library from "../../../src/index.ts";
import { expand, tensor } from "../../../src/index.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { leafOf, type Operands } from "../calls.ts";
import { each, lossOf, type Row, rowsOf } from "./table.ts";

/** A root whose graph was already differentiated. */
const passed = (compute: (x: Tensor) => Tensor, x: Tensor): Tensor => {
  const root = library.sum(compute(leafOf(x)));
  library.backward(root);
  return root;
};
const spent = (name: string, compute: (x: Tensor, all: Operands) => Tensor): Row => [
  "backward",
  (all) => [passed((x) => compute(x, all), all.vector)],
  `the tensors saved by ${name} were freed`,
  "retainGraph: true",
];
export const graphs = rowsOf("a graph that is none", AutogradError, [
  ["backward", ({ x }) => [library.neg(leafOf(x))], "float32[", "expected a result of one element"],
  ["grad", ({ x }) => lossOf(x), "float32[", "expected a result of one element"],
  ["backward", ({ x }) => [library.sum(x)], "float32[] does not depend", "requires a gradient"],
  ["backward", ({ x }) => [library.noGrad(() => library.sum(leafOf(x)))], "float32[] does not depend", "noGrad"],
  ["grad", ({ x }) => [library.sum(x), [x]], "float32[] does not depend", "requires a gradient"],
  ["grad", ({ x }) => [library.sum(leafOf(x)), [leafOf(x)]], "do not depend on input 0", "allowUnused: true"],
  spent("mul", (x) => library.mul(x, x)),
  spent("exp", (x) => library.exp(x)),
  spent("softmax", (x) => library.softmax(x)),
  spent("sort", (x) => library.sort(x).values),
  spent("maskedFill", (x) => library.maskedFill(x, tensor(true), 0)),
  spent("gather", (x, { places }) => library.gather(x, places, { dim: 0 })),
  spent("indexSelect", (x, { places }) => library.indexSelect(x, places, { dim: 0 })),
  spent("scatterAdd", (x, { places, other }) => library.scatterAdd(x, places, other, { dim: 0 })),
  ...each("add_ sub_ mul_ div_ copy_", ({ x, y }) => [leafOf(x), y], "a leaf float32[", "noGrad(() => …)"),
  ...each("add_ sub_ mul_ div_ copy_", ({ x, y }) => [x, leafOf(y)], "in an autograd graph", "noGrad(() => …)"),
  ["fill_", ({ x }) => [leafOf(x), 0], "a leaf float32[", "noGrad(() => …)"],
  ["zero_", ({ x }) => [leafOf(x)], "a leaf float32[", "noGrad(() => …)"],
  ["maskedFill_", ({ x, mask }) => [leafOf(x), mask, 0], "a leaf float32[", "noGrad(() => …)"],
  ["maskedFill_", ({ x, mask, value }) => [x, mask, leafOf(value)], "in an autograd graph", "noGrad(() => …)"],
]);
export const repeats = rowsOf("elements that repeat", ArgumentError, [
  ...each("add_ sub_ mul_ div_ copy_ fill_", ({ value }) => [expand(value, [3]), 1], "[3] is expanded", "clone()"),
  ["zero_", ({ value }) => [expand(value, [3])], "[3] is expanded", "clone()"],
  ["maskedFill_", ({ value }) => [expand(value, [3]), tensor(true), 0], "[3] is expanded", "change a clone()"],
]);
