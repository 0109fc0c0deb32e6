/** Invalid calls of operations: more memory than available. */
import { OutOfMemoryError } from "../../../src/core/errors.ts";
import { expand, select, slice, tensor } from "../../../src/index.ts";
import { kinds, type Operands } from "../calls.ts";
import { each, type Name, rowsOf } from "./table.ts";

/** More elements than any machine could hold, without memory: one element that is repeated. */
const COUNT = 2 ** 42;
const endless = ({ value }: Operands) => expand(value, [COUNT]);
const wide = ({ value }: Operands) => expand(value, [2 ** 21, 2 ** 21]);
const tall = ({ value }: Operands) => expand(value, [2 ** 21]);
const named = ({ indices: own }: Operands) => expand(select(slice(own, { end: 1 }), 1, 0), [COUNT]);
const noMemory = "the result can't be allocated";
const everyElement =
  "relu6 hardtanh dropout clone contiguous sort argsort softmax logSoftmax " +
  "zerosLike onesLike emptyLike randLike randnLike bernoulli isposinf isneginf";
/** These operations reduce, or accept a number too. */
const others: readonly Name[] = ["ldexp", "logsumexp", "trapezoid", "mvlgamma"];
export const limits = rowsOf("more memory than there is", OutOfMemoryError, [
  ...each("zeros ones empty rand randn", () => [[COUNT]], noMemory, "bytes"),
  ["full", () => [[COUNT], 1], noMemory, "bytes"],
  ...each("uniform normal randint", () => [0, 1, [COUNT]], noMemory, "bytes"),
  ["bernoulli", () => [0.5, [COUNT]], noMemory, "bytes"],
  ...each("arange randperm", () => [COUNT], noMemory, "bytes"),
  ["linspace", () => [0, 1, COUNT], noMemory, "bytes"],
  ["eye", () => [2 ** 21, 2 ** 21], noMemory, "bytes"],
  ...each(everyElement, (all) => [endless(all)], noMemory, "bytes"),
  ...each(
    [...new Set([...kinds.unary, ...kinds.float])].filter((name) => !others.includes(name)),
    (all) => [endless(all)],
    noMemory,
    "bytes",
  ),
  ...each(kinds.binary, (all) => [endless(all), all.value], noMemory, "bytes"),
  ["angle", (all) => [endless(all)], noMemory, "bytes"],
  ["conj", () => [expand(tensor({ re: 1, im: 1 }), [COUNT])], noMemory, "bytes"],
  ["fullLike", (all) => [endless(all), 1], noMemory, "bytes"],
  ["randintLike", (all) => [endless(all), 0, 9], noMemory, "bytes"],
  ["toDType", (all) => [endless(all), "float16"], noMemory, "bytes"],
  ["lerp", (all) => [endless(all), 0, 0.5], noMemory, "bytes"],
  ["prelu", (all) => [endless(all), all.value], noMemory, "bytes"],
  ["clamp", (all) => [endless(all), { min: 0 }], noMemory, "bytes"],
  ["where", (all) => [tensor(true), endless(all), 0], noMemory, "bytes"],
  ...each(kinds.unaryOfBits, (all) => [named(all)], noMemory, "bytes"),
  ...each(kinds.binaryOfBits, (all) => [named(all), named(all)], noMemory, "bytes"),
  ["maskedFill", (all) => [endless(all), tensor(true), 0], noMemory, "bytes"],
  ...each("cumsum cumprod", (all) => [endless(all), { dim: 0 }], noMemory, "bytes"),
  ["topk", (all) => [endless(all), COUNT], noMemory, "bytes"],
  ...each("matmul mm", (all) => [expand(all.value, [2 ** 21, 1]), expand(all.value, [1, 2 ** 21])], noMemory, "bytes"),
  ["rope", (all) => [wide(all)], noMemory, "bytes"],
  ["linear", (all) => [expand(all.value, [2 ** 21, 1]), expand(all.value, [2 ** 21, 1])], noMemory, "bytes"],
  ["outer", (all) => [tall(all), tall(all)], noMemory, "bytes"],
  ["kron", (all) => [tall(all), tall(all)], noMemory, "bytes"],
  ["einsum", (all) => ["i,j->ij", tall(all), tall(all)], noMemory, "bytes"],
  ...each("cat stack", (all) => [[endless(all), endless(all)]], noMemory, "bytes"),
  ["flip", (all) => [endless(all), 0], noMemory, "bytes"],
  ["roll", (all) => [endless(all), 1], noMemory, "bytes"],
  ["pad", (all) => [endless(all), [1, 1]], noMemory, "bytes"],
  ...each("repeat tile", ({ vector }) => [vector, [COUNT]], noMemory, "bytes"),
  ["diag", (all) => [all.value.reshape([1]), { diagonal: 2 ** 21 }], noMemory, "bytes"],
  ...each("tril triu", (all) => [wide(all)], noMemory, "bytes"),
  ["oneHot", ({ places }) => [places, { numClasses: COUNT }], noMemory, "bytes"],
  ["gather", (all) => [all.vector, named(all), { dim: 0 }], noMemory, "bytes"],
  ["takeAlongDim", (all) => [all.vector, named(all), { dim: 0 }], noMemory, "bytes"],
  ["indexSelect", (all) => [all.vector, named(all), { dim: 0 }], noMemory, "bytes"],
  ["scatterAdd", (all) => [endless(all), all.places, all.vector, { dim: 0 }], noMemory, "bytes"],
  ["scatter", (all) => [endless(all), all.places, all.vector, { dim: 0 }], noMemory, "bytes"],
  ["indexAdd", (all) => [endless(all), all.places, all.vector, { dim: 0 }], noMemory, "bytes"],
  ...each("layerNorm rmsNorm", (all) => [endless(all)], noMemory, "bytes"),
  ...each("addLayerNorm addRmsNorm", (all) => [endless(all), endless(all)], noMemory, "bytes"),
]);
