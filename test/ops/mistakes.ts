/** Wrong calls of operations: what each must be refused with. */
import { AutogradError } from "../../src/autograd/node.ts";
import { ArgumentError, DTypeError, type OrchardError, OutOfMemoryError, ShapeError } from "../../src/core/errors.ts";
import * as library from "../../src/index.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { kinds, leafOf, type Operands, type OperationName } from "./calls.ts";

export type ErrorClass = new (operation: string, code: string, message: string) => OrchardError;

export interface Mistake {
  readonly kind: string;
  /** What is called, by its public name, which the error must have too. */
  readonly operation: OperationName | "backward" | "grad";
  readonly arguments: (operands: Operands) => readonly unknown[];
  readonly error: ErrorClass;
  /** Parts of the message: what came, and what was wanted. */
  readonly says: readonly string[];
}

type Name = Mistake["operation"];
type Arguments = Mistake["arguments"];
type Row = readonly [operation: Name, arguments_: Arguments, ...says: readonly string[]];

const rowsOf = (kind: string, error: ErrorClass, rows: readonly Row[]): Mistake[] =>
  rows.map(([operation, arguments_, ...says]) => ({ kind, operation, arguments: arguments_, error, says }));

/** The same mistake with several operations. */
const each = (names: string | readonly Name[], arguments_: Arguments, ...says: readonly string[]): Row[] =>
  (typeof names === "string" ? names.split(" ") : names).map((name) => [name as Name, arguments_, ...says]);

const { ones, tensor, expand, select, slice } = library;
const whole = { dtype: "int64" } as const;
/** A vector of 3, which no operand has. */
const three = () => ones([3]);
const cube = () => ones([1, 1, 2]);
const highest = () => ones([1, 1, 1, 1, 1, 1, 1, 1]);
const nine = [1, 1, 1, 1, 1, 1, 1, 1, 1];
const dtypeThatIsNone = { dtype: "complex64" as never };
const refused = 'got "complex64"';
const list = "float64, float32, float16";

const shapes = rowsOf("shapes that do not fit", ShapeError, [
  ...each("hypot logaddexp xlogy nextafter copysign heaviside", ({ x }) => [x, three()], "[3]", "must be equal or 1"),
  ...each("gcd lcm", ({ integers }) => [integers, ones([3], whole)], "[3]", "must be equal or 1"),
  ...each(kinds.binary, ({ x }) => [x, three()], "[3] can't be broadcast together", "must be equal or 1"),
  ...each(kinds.binaryOfBits, ({ bytes }) => [bytes, ones([3], whole)], "[3]", "must be equal or 1"),
  ["lerp", ({ x }) => [x, three(), 1], "[3]", "must be equal or 1"],
  ["prelu", ({ x }) => [x, three()], "expected a weight of one element or of shape [", "got float32[3]"],
  ...each("add_ sub_ mul_ div_ copy_", ({ x }) => [x, three()], "[3]", "must be equal or 1"),
  ...each("add_ sub_ mul_ div_ copy_", ({ vector, x }) => [vector, x], "more elements than x has"),
  ["clamp", ({ x }) => [x, { min: three() }], "[3]", "must be equal or 1"],
  ["where", ({ mask, x }) => [mask, x, three()], "[3]", "must be equal or 1"],
  ...each("maskedFill maskedFill_", ({ x }) => [x, ones([3], { dtype: "bool" }), 0], "[3]", "must be equal or 1"),
  ["maskedFill_", ({ vector, mask }) => [vector, mask, 0], "more elements than x has"],
  ...each("maskedFill maskedFill_", ({ x, mask }) => [x, mask, three()], "float32[3]", "a tensor without axes"),
  ["matmul", ({ x }) => [x, three()], "times float32[3]", "they must be equal"],
  ["flashAttention", ({ x }) => [x, x, x], "k float32[", "all to be [batch, heads, rows, dim] or [batch, rows, dim]"],
  ["flashAttention", ({ batch }) => [batch, batch, cube()], "v float32[1, 1, 2]", "same heads and rows"],
  [
    "scaledDotProductAttention",
    ({ batch }) => [batch, cube(), cube()],
    "k float32[1, 1, 2]",
    "expected equal last axes",
  ],
  ["mm", ({ x }) => [x, three()], "and float32[3]", "expected matrices"],
  ["bmm", ({ x }) => [x, x], "got float32[", "expected batches of matrices (rank 3)"],
  ["addmm", ({ x }) => [three(), x, x], "got float32[3]", "expected an input that broadcasts to"],
  [
    "linear",
    ({ x }) => [x, ones([2, 3])],
    "for weight float32[2, 3]",
    "expected the last axis of x to have 3 elements",
  ],
  ["linear", ({ value, x }) => [value, x], "got x float32[] for weight", "expected the last axis of x to have"],
  ["linear", ({ x, y }) => [x, y, three()], "got float32[3]", "an element for each row"],
  ["linear", ({ x, batch }) => [x, batch], "got", "expected weights [out, in] or [in]"],
  ["linear", ({ x }) => [x, three(), three()], "got float32[3]", "bias to have no axis"],
  ["rope", ({ vector }) => [vector], "float32[", "to be [..., seq, headDim]"],
  ["rope", () => [ones([2, 3])], "an even number of up to 3 for x float32[2, 3]", "got 3"],
  ["rope", () => [ones([2, 4]), { dim: 6 }], "of up to 4 for x float32[2, 4]", "got 6"],
  ["rope", ({ x }) => [x, { positions: ones([3], whole) }], "got int64[3]", "[seq] or [batch, seq]"],
  ["rope", ({ batch }) => [batch, { positions: ones([2, 3], whole) }], "got int64[2, 3]", "or [1, "],
  ["dot", ({ vector }) => [vector, three()], "and float32[3]", "expected vectors of one length"],
  ["outer", ({ x, vector }) => [x, vector], "got", "expected vectors"],
  ["cross", ({ x }) => [x, three()], "and float32[3]", "one rank with three elements along dim -1"],
  ["trace", ({ vector }) => [vector], "expected a matrix, got float32["],
  ["cov", ({ batch }) => [batch], "expected at most two axes, got float32[1, "],
  ["cov", ({ x }) => [x, { aweights: three() }], "got float32[3]", "one for each observation"],
  ["corrcoef", ({ batch }) => [batch], "expected at most two axes, got float32[1, "],
  ["cdist", ({ x, vector }) => [x, vector], "expected points in rows", "and float32["],
  ["cdist", ({ x }) => [x, ones([1, 3])], "and float32[1, 3]", "as many coordinates"],
  ["einsum", ({ x }) => ["ij,j", x, three()], "have", "must be equal or 1"],
  ["einsum", ({ x }) => ["i", x], "has 2 axes", "1 letters"],
  ["cat", ({ x }) => [[x, three()]], "got float32[3] as tensor 1", "expected tensors of one rank"],
  ["stack", ({ x }) => [[x, three()]], "got float32[3] as tensor 1", "expected one shape"],
  ["gather", ({ x, places }) => [x, places, { dim: 0 }], "got int64[", "index to have the rank of"],
  ["takeAlongDim", ({ x, places }) => [x, places, { dim: 0 }], "got int64[", "index to have the rank of"],
  ["takeAlongDim", ({ x }) => [x, ones([3, 3], whole), { dim: 0 }], "can't be broadcast", "must be equal or 1"],
  ["scatterAdd", ({ x, indices }) => [x, indices, ones([3, 3]), { dim: 0 }], "float32[3, 3]", "at most the sizes of"],
  ["scatter", ({ x, indices }) => [x, indices, ones([3, 3]), { dim: 0 }], "float32[3, 3]", "at most the sizes of"],
  ["indexSelect", ({ x, indices }) => [x, indices, { dim: 0 }], "got int64[", "expected a vector of indices"],
  ["indexAdd", ({ x, y }) => [x, ones([3], whole), y, { dim: 0 }], "3 slices along axis 0", "one for each index"],
  ["indexAdd", ({ x, y, indices }) => [x, indices, y, { dim: 0 }], "int64[", "expected a vector of indices"],
  ["embedding", ({ places, vector }) => [places, vector], "got float32[", "weight to be [rows, width]"],
  ["embeddingBag", ({ places, vector }) => [places, vector], "got float32[", "weight to be [rows, width]"],
  ["embeddingBag", ({ x }) => [ones([1, 1, 1], whole), x], "got int64[1, 1, 1]", "or [total]"],
  [
    "embeddingBag",
    ({ x, places, indices }) => [places, x, { offsets: indices }],
    "got int64[",
    "offsets to be a vector",
  ],
  [
    "embeddingBag",
    ({ x, indices }) => [indices, x, { mode: "sum", perSampleWeights: three() }],
    "got float32[3]",
    "perSampleWeights to have the shape of",
  ],
  [
    "embeddingBag",
    ({ x, places }) => [places, x, { offsets: ones([0], whole), includeLastOffset: true }],
    "got none",
    "at least one offset",
  ],
  [
    "crossEntropy",
    ({ value, places }) => [value, places],
    "expected logits to have an axis of classes",
    "got float32[]",
  ],
  ["crossEntropy", ({ x }) => [x, ones([3], whole)], "expected targets of shape", "without axis 1", "got int64[3]"],
  ["crossEntropy", ({ x }) => [x, three()], "to have the shape of logits", "got float32[3]"],
  [
    "crossEntropy",
    ({ x, places }) => [x, places, { weight: three() }],
    "expected weight",
    "one factor for each",
    "got float32[3]",
  ],
  ...each(
    "mseLoss binaryCrossEntropyWithLogits",
    ({ x }) => [x, three()],
    "expected target to have the shape of x",
    "got float32[3]",
  ),
  ...each(
    "binaryCrossEntropyWithLogits",
    ({ x, y }) => [x, y, { weight: three() }],
    "expected weight",
    "equal or 1",
    "got float32[3]",
  ),
  [
    "binaryCrossEntropyWithLogits",
    ({ x, y }) => [x, y, { posWeight: three() }],
    "expected posWeight",
    "equal or 1",
    "got float32[3]",
  ],
  ...each("layerNorm rmsNorm", ({ value }) => [value], "expected at least one axis", "got float32[]"),
  ...each(
    "layerNorm rmsNorm",
    ({ x }) => [x, { weight: three() }],
    "expected weight to have the shape",
    "got float32[3]",
  ),
  ...each(
    "addLayerNorm addRmsNorm",
    ({ x, y }) => [x, y, { weight: three() }],
    "expected weight to have the shape",
    "got float32[3]",
  ),
  ...each(
    "addLayerNorm addRmsNorm",
    ({ x }) => [x, three()],
    "expected the residual to have the shape of x",
    "got float32[3]",
  ),
  ["layerNorm", ({ x }) => [x, { bias: three() }], "expected bias to have the shape", "got float32[3]"],
  ["layerNorm", ({ x }) => [x, { normalizedShape: [3] }], "got [3]", "sizes of the last axes"],
  ["layerNorm", ({ x }) => [x, { normalizedShape: [] }], "got []", "one or more"],
  ["layerNorm", ({ x }) => [x, { normalizedShape: 3 }], "got [3]", "sizes of the last axes"],
  ["reshape", ({ x }) => [x, [5, 5]], "float32[", "do not fill [5, 5]"],
  ["reshape", ({ x }) => [x, [-1, -1]], "float32[", "do not fill [-1, -1]"],
  ["reshape", () => [ones([0, 2]), [0, -1]], "[0, -1] could be any size", "give the size"],
  ["expand", () => [three(), [4]], "float32[3]", "only axes of size 1 repeat"],
  ["unflatten", () => [three(), 0, [2, 2]], "sizes [2, 2]", "axis 0 of float32[3]"],
  ["split", () => [three(), [1, 1]], "got [1, 1]", "expected sizes that add up to 3, axis 0 of float32[3]"],
  ["permute", () => [three(), [0, 1]], "got [0, 1]", "expected dims to name each of the 1 axes"],
  ["permute", ({ x }) => [x, [0, 0]], "dims [0, 0]", "names an axis twice"],
  ["movedim", ({ x }) => [x, [0, 1], [0]], "each of 2 axes", "expected one destination"],
  ["diag", () => [cube()], "got float32[1, 1, 2]", "expected a vector or a matrix"],
  ["diagonal", ({ x }) => [x, { dim1: 1, dim2: 1 }], "dim1 1 and dim2 1", "are one axis"],
  ...each("tril triu", () => [three()], "got float32[3]", "a matrix or a batch of matrices"),
  ["tensor", () => [[1, 2, 3], { shape: [2] }], "got 3", "expected 2 elements"],
  ["fromArray", () => [new Float32Array(3), [2]], "got 3", "expected 2 elements"],
  ["repeat", () => [cube(), [2]], "got [2]", "expected at least 3 repeats"],
  ["pad", () => [three(), [1]], "got [1]", "expected two whole numbers for each of at most 1 axes"],
  ["pad", () => [three(), [-4, 0]], "crops more than float32[3] has", "[-1] would be left"],
  ["roll", ({ x }) => [x, [1, 2], { dims: 0 }], "got 2 shifts", "expected one shift for each"],
  ["flatten", ({ x }) => [x, { startDim: 1, endDim: 0 }], "got 1 and 0", "expected startDim to be at most endDim"],
  ["flip", ({ x }) => [x, [0, 0]], "dims [0, 0]", "names an axis twice"],
  ["squeeze", ({ x }) => [x, { dim: [0, 0] }], "dim [0, 0]", "names an axis twice"],
  ["sum", ({ x }) => [x, { dim: [0, 0] }], "dim [0, 0]", "names an axis twice"],
  ["multinomial", () => [cube(), 1], "got float32[1, 1, 2]", "expected [categories] or [rows, categories]"],
  ...each(
    "amax amin max min argmax argmin",
    () => [ones([0, 3]), { dim: 0 }],
    "float32[0, 3]",
    "expected at least one",
  ),
  ["backward", ({ vector }) => [library.neg(leafOf(vector)), three()], "got [3]", "the shape of its tensor, ["],
  ["grad", ({ vector }) => lossOf(vector, { gradOutputs: [three()] }), "got [3]", "the shape of its tensor, ["],
]);

const lossOf = (x: Tensor, options?: object): readonly unknown[] => {
  const own = leafOf(x);
  return [library.neg(own), [own], options];
};

const dtypes = rowsOf("dtypes that do not fit", DTypeError, [
  ...each(kinds.binaryOfNumbers, ({ mask }) => [mask, mask], "got bool", "expected floats or integers"),
  ...each(kinds.unaryOfNumbers, ({ mask }) => [mask], "got bool", "expected floats or integers"),
  ["clamp", ({ mask }) => [mask, { min: true }], "got bool", "expected floats or integers"],
  ["sub_", ({ mask }) => [mask, mask], "got bool", "expected floats or integers"],
  ...each("relu6 hardtanh", ({ mask }) => [mask], "got bool", "expected floats or integers"),
  ...each("add_ sub_ mul_", ({ integers }) => [integers, 0.5], "the result is float32", "makes a new tensor"),
  ["div_", ({ integers }) => [integers, integers], "the result is float32", "makes a new tensor"],
  ...each("gcd lcm", ({ x }) => [x, x], "got float32", "expected integers"),
  ...each("gcd lcm", ({ mask }) => [mask, mask], "got bool", "expected integers"),
  ["heaviside", ({ x, integers }) => [x, integers], "got float32 and int32", "expected two tensors of one dtype"],
  ...each("isClose allClose equal", ({ x, integers }) => [x, integers], "got float32 and int32", "of one dtype"),
  ...each(kinds.binaryOfBits, ({ x }) => [x, x], "got float32", "expected integers or bools"),
  ...each(kinds.unaryOfBits, ({ x }) => [x], "got float32", "expected integers or bools"),
  ["where", ({ x }) => [x, x, x], "got float32[", "expected the condition to be bool"],
  ...each("maskedFill maskedFill_", ({ x }) => [x, x, 0], "got float32[", "the mask to be bool"),
  ["lerp", ({ bytes }) => [bytes, bytes, 1], "got uint8[", "expected floats"],
  ...each("matmul mm", ({ x, indices }) => [x, indices], "and int64[", "expected operands of one dtype"),
  ["bmm", ({ batch }) => [batch, ones(batch.shape, whole)], "and int64[", "expected operands of one dtype"],
  ["addmm", ({ x, indices }) => [indices, x, x], "int64[", "expected operands of one dtype"],
  ["linear", ({ x, indices }) => [x, indices], "and int64[", "expected operands of one dtype"],
  ["linear", ({ mask }) => [mask, mask], "bool[", "bool has no product"],
  ["dropout", ({ bytes }) => [bytes], "got uint8", "expected a float dtype"],
  ["rope", ({ integers }) => [integers], "got int32", "expected a float dtype"],
  ["rope", ({ x, vector }) => [x, { positions: vector }], "got float32", "positions to be int64 or int32"],
  ["dot", ({ vector, places }) => [vector, places], "and int64[", "expected operands of one dtype"],
  ["einsum", ({ x, indices }) => ["ij,jk", x, indices], "and int64[", "expected operands of one dtype"],
  ...each("matmul mm", ({ mask }) => [mask, mask], "bool[", "bool has no product"),
  ...each("gather takeAlongDim", ({ x }) => [x, x, { dim: 0 }], "got float32", "an index of integers"),
  ["scatterAdd", ({ x }) => [x, x, x, { dim: 0 }], "got float32", "an index of integers"],
  ["scatter", ({ x }) => [x, x, x, { dim: 0 }], "got float32", "an index of integers"],
  ["indexSelect", ({ x, vector }) => [x, vector, { dim: 0 }], "got float32", "an index of integers"],
  ["indexAdd", ({ x, vector }) => [x, vector, x, { dim: 0 }], "got float32", "an index of integers"],
  ["oneHot", ({ x }) => [x], "got float32", "an index of integers"],
  ["scatterAdd", ({ x, indices }) => [x, indices, indices, { dim: 0 }], "got int64", "source to have the dtype of x"],
  ["scatter", ({ x, indices }) => [x, indices, indices, { dim: 0 }], "got int64", "source to have the dtype of x"],
  [
    "indexAdd",
    ({ x, places, indices }) => [x, places, indices, { dim: 0 }],
    "got int64",
    "source to have the dtype of x",
  ],
  ...each("mean std varMean softmax logSoftmax norm", ({ bytes }) => [bytes], "uint8[", "expected floats"),
  ["var", ({ bytes }) => [bytes], "uint8[", "expected floats"],
  ...each("argmax argmin", ({ mask }) => [mask], "bool[", "expected numbers"),
  ["bernoulli", ({ places }) => [places], "got int64", "expected a float dtype"],
  ["multinomial", ({ places }) => [places, 1], "got int64", "expected a float dtype"],
  ...each("randLike randnLike", ({ places }) => [places], "got int64", "expected a float dtype"),
  ...each("rand randn", () => [[2], whole], "got int64", "expected a float dtype"),
  ...each("uniform normal", () => [0, 1, [2], whole], "got int64", "expected a float dtype"),
  ...each("arange", () => [0, 3, { dtype: "bool" }], "got bool", "a dtype with numbers"),
  ["linspace", () => [0, 1, 2, { dtype: "bool" }], "got bool", "a dtype with numbers"],
  ["fromArray", () => [new Uint16Array(1)], "got a Uint16Array", "with elements of a dtype"],
  ["tensor", () => [new Uint16Array(1)], "Uint16Array", "give { dtype }"],
  ...each(
    "embedding embeddingBag",
    ({ x }) => [x, x],
    "indices to be integers, got float32[",
    'toDType(indices, "int64")',
  ),
  ["embedding", ({ mask, x }) => [mask, x], "indices to be integers, got bool[", 'toDType(indices, "int64")'],
  ...each("embedding embeddingBag", ({ indices }) => [indices, indices], "got int64[", "weight to be of floats"),
  ["embeddingBag", ({ places, x, vector }) => [places, x, { offsets: vector }], "offsets to be integers, got float32["],
  [
    "embeddingBag",
    ({ indices, x }) => [indices, x, { mode: "sum", perSampleWeights: ones(x.shape, { dtype: "float16" }) }],
    "got float16",
    "the dtype of weight, float32",
  ],
  ...each(
    "mseLoss binaryCrossEntropyWithLogits",
    ({ integers }) => [integers, integers],
    "expected x to be floats",
    "got int32[",
  ),
  ...each(
    "mseLoss binaryCrossEntropyWithLogits",
    ({ x }) => [x, ones(x.shape, { dtype: "float16" })],
    "expected target to have the dtype of x, float32",
    "got float16",
  ),
  [
    "binaryCrossEntropyWithLogits",
    ({ x, y, places }) => [x, y, { weight: places }],
    "expected weight to be floats",
    "got int64[",
  ],
  ...each("layerNorm rmsNorm", ({ integers }) => [integers], "expected a tensor of floats", "got int32[", "toDType(x"),
  ...each(
    "addLayerNorm addRmsNorm",
    ({ integers }) => [integers, integers],
    "expected a tensor of floats",
    "got int32[",
    "toDType(x",
  ),
  ...each(
    "layerNorm rmsNorm",
    ({ x, places }) => [x, { weight: places }],
    "expected weight",
    "to be float32",
    "got int64[",
  ),
  ["layerNorm", ({ x, places }) => [x, { bias: places }], "expected bias", "to be float32", "got int64["],
  [
    "layerNorm",
    ({ x, vector }) => [x.to("float16"), { weight: vector, bias: vector.to("float16") }],
    "expected weight and bias to have one dtype",
    "got float32 and float16",
  ],
  [
    "rmsNorm",
    ({ x, vector }) => [x.to("bfloat16"), { weight: vector.to("float16") }],
    "to be bfloat16 or float32",
    "got float16[",
  ],
  ...each(
    "addLayerNorm addRmsNorm",
    ({ x, y }) => [x, y.to("float16")],
    "expected the residual to have the dtype of x",
    "got float16[",
  ),
  ["crossEntropy", ({ integers, places }) => [integers, places], "expected logits to be floats", "got int32["],
  ["crossEntropy", ({ x, mask }) => [x, mask], "targets to be integers, got bool["],
  ["crossEntropy", ({ x }) => [x, ones(x.shape, { dtype: "float16" })], "the dtype of logits, float32", "got float16"],
  [
    "crossEntropy",
    ({ x, places, indices }) => [x, places, { weight: indices }],
    "expected weight to be floats",
    "got int64[",
  ],
  ...each("zeros ones empty rand randn", () => [[2], dtypeThatIsNone], refused, list),
  ["full", () => [[2], 1, dtypeThatIsNone], refused, list],
  ...each("eye arange randperm", () => [2, dtypeThatIsNone], refused, list),
  ["linspace", () => [0, 1, 2, dtypeThatIsNone], refused, list],
  ["randint", () => [0, 1, [2], dtypeThatIsNone], refused, list],
  ["tensor", () => [[1], dtypeThatIsNone], refused],
  ["bernoulli", () => [0.5, [2], dtypeThatIsNone], refused, list],
  ...each("zerosLike onesLike emptyLike randLike randnLike", ({ x }) => [x, dtypeThatIsNone], refused, list),
  ["fullLike", ({ x }) => [x, 1, dtypeThatIsNone], refused, list],
  ["randintLike", ({ x }) => [x, 0, 1, dtypeThatIsNone], refused, list],
  ["toDType", ({ x }) => [x, "complex64"], refused, list],
  ...each("sum prod mean softmax logSoftmax", ({ x }) => [x, dtypeThatIsNone], refused, list),
  ...each("cumsum cumprod", ({ x }) => [x, { dim: 0, ...dtypeThatIsNone }], refused, list),
  ...each(
    "zeros ones empty",
    () => [[2], { ...whole, requiresGrad: true }],
    "got int64",
    "expected a float dtype with { requiresGrad }",
  ),
  [
    "backward",
    ({ vector, places }) => [library.neg(leafOf(vector)), places],
    "got int64",
    "expected the gradient to be a float",
  ],
  [
    "grad",
    ({ vector, places }) => lossOf(vector, { gradOutputs: [places] }),
    "got int64",
    "expected the gradient to be a float",
  ],
]);

const ranks = rowsOf("a rank over 8", ShapeError, [
  ...each("zeros ones empty rand randn", () => [nine], "got rank 9", "at most 8"),
  ["full", () => [nine, 1], "got rank 9", "at most 8"],
  ["randint", () => [0, 1, nine], "got rank 9", "at most 8"],
  ...each("uniform normal", () => [0, 1, nine], "got rank 9", "at most 8"),
  ["bernoulli", () => [0.5, nine], "got rank 9", "at most 8"],
  ["tensor", () => [[[[[[[[[[1]]]]]]]]]], "got rank 9", "at most 8"],
  ["fromArray", () => [new Float32Array(1), nine], "got rank 9", "at most 8"],
  ["reshape", () => [highest(), nine], "got rank 9", "at most 8"],
  ["expand", () => [highest(), nine], "got rank 9", "at most 8"],
  ["unflatten", () => [highest(), 0, [1, 1]], "got rank 9", "at most 8"],
  ["unsqueeze", () => [highest(), 0], "got rank 9", "at most 8"],
  ["stack", () => [[highest()]], "got rank 9", "at most 8"],
  ...each("repeat tile", () => [highest(), nine], "got rank 9", "at most 8"),
  ["oneHot", () => [ones([1, 1, 1, 1, 1, 1, 1, 1], whole), { numClasses: 2 }], "got rank 9", "at most 8"],
  ["einsum", () => ["abcde,fghi->abcdefghi", ones([1, 1, 1, 1, 1]), ones([1, 1, 1, 1])], "got rank 9", "at most 8"],
]);

const outside = "from -2 to 1 for a tensor of rank 2";
const axes = rowsOf("an axis out of range", ShapeError, [
  ...each(
    "all any amax amin max min argmax argmin sum prod mean std norm logsumexp varMean " +
      "argsort sort softmax logSoftmax cumsum cumprod unbind squeeze slice",
    ({ x }) => [x, { dim: 2 }],
    "got 2",
    outside,
  ),
  ["var", ({ x }) => [x, { dim: -3 }], "got -3", outside],
  ["sum", ({ x }) => [x, { dim: 0.5 }], "got 0.5", outside],
  ["topk", ({ x }) => [x, 1, { dim: 2 }], "got 2", outside],
  ...each("split chunk", ({ x }) => [x, 1, { dim: 2 }], "got 2", outside),
  ...each("narrow", ({ x }) => [x, 2, 0, 1], "got 2", outside),
  ["select", ({ x }) => [x, -3, 0], "got -3", outside],
  ["transpose", ({ x }) => [x, 0, 2], "got 2", outside],
  ["swapaxes", ({ x }) => [x, 0, 2], "got 2", outside],
  ["movedim", ({ x }) => [x, 0, 2], "got 2", outside],
  ["permute", ({ x }) => [x, [0, 2]], "got 2", outside],
  ["flatten", ({ x }) => [x, { endDim: 2 }], "got 2", outside],
  ["unflatten", ({ x }) => [x, 2, [1]], "got 2", outside],
  ["unsqueeze", ({ x }) => [x, 3], "got 3", "from -3 to 2"],
  ["crossEntropy", ({ x, places }) => [x, places, { dim: 2 }], "got 2", outside],
  ["diagonal", ({ x }) => [x, { dim2: 2 }], "got 2", outside],
  ["flip", ({ x }) => [x, 2], "got 2", outside],
  ["roll", ({ x }) => [x, 1, { dims: 2 }], "got 2", outside],
  ["cat", ({ x }) => [[x], { dim: 2 }], "got 2", outside],
  ["stack", ({ x }) => [[x], { dim: 3 }], "got 3", "from -3 to 2"],
  ...each("gather takeAlongDim", ({ x, indices }) => [x, indices, { dim: 2 }], "got 2", outside),
  ["indexSelect", ({ x, places }) => [x, places, { dim: 2 }], "got 2", outside],
  ["scatterAdd", ({ x, indices }) => [x, indices, x, { dim: 2 }], "got 2", outside],
  ["scatter", ({ x, indices }) => [x, indices, x, { dim: 2 }], "got 2", outside],
  ["indexAdd", ({ x, places }) => [x, places, x, { dim: 2 }], "got 2", outside],
  ...each("slice narrow", ({ value }) => [value, 0, 0, 1], "got float32[]", "expected a tensor of at least rank 1"),
  ["select", ({ value }) => [value, 0, 0], "got float32[]", "expected a tensor of at least rank 1"],
]);

const far = () => tensor([0n, 7n, -1n]);
const right = () => tensor([0n, 1n, 1n]);
const farther = () => tensor([[0n, -2n], [1n, 1n]]); // biome-ignore format: rows
const square = () => tensor([[1, 2], [3, 4]]); // biome-ignore format: rows
const indices = rowsOf("an index out of range", ShapeError, [
  ["gather", () => [square(), farther(), { dim: 1 }], "got -2 at [0, 1]", "indices of 0 to 1"],
  ["takeAlongDim", () => [square(), farther(), { dim: 1 }], "got -2 at [0, 1]", "indices of 0 to 1"],
  ["takeAlongDim", () => [three(), far()], "got 7 at [1]", "indices of 0 to 2"],
  ["indexSelect", () => [three(), far(), { dim: 0 }], "got 7 at [1]", "indices of 0 to 2"],
  ["scatterAdd", () => [square(), farther(), square(), { dim: 1 }], "got -2 at [0, 1]", "indices of 0 to 1"],
  ["scatter", () => [square(), farther(), square(), { dim: 1 }], "got -2 at [0, 1]", "indices of 0 to 1"],
  ["indexAdd", () => [three(), far(), three(), { dim: 0 }], "got 7 at [1]", "indices of 0 to 2"],
  ["oneHot", () => [far(), { numClasses: 7 }], "got 7 at [1]", "indices of 0 to 6"],
  ["oneHot", () => [tensor([2n, -1n])], "got -1 at [1]", "indices of 0 to 2"],
  ["embedding", () => [far(), square()], "got 7 at [1]", "indices of 0 to 1"],
  ["embedding", () => [farther(), square()], "got -2 at [0, 1]", "indices of 0 to 1"],
  ["embedding", () => [far(), ones([0, 2])], "got 3", "an axis without elements"],
  ["embeddingBag", () => [far(), ones([0, 2]), { offsets: tensor([0n]) }], "got 3", "without elements"],
  ["embeddingBag", () => [farther(), square()], "got -2 at [0, 1]", "indices of 0 to 1"],
  ["embeddingBag", () => [far(), square(), { offsets: tensor([0n]) }], "got 7 at [1]", "indices of 0 to 1"],
  ["embeddingBag", () => [right(), square(), { offsets: tensor([1n, 2n]) }], "got 1 at [0]", "begin with 0"],
  ["embeddingBag", () => [right(), square(), { offsets: tensor([0n, 2n, 1n]) }], "got 1 at [2]", "ascend"],
  ["embeddingBag", () => [right(), square(), { offsets: tensor([0n, 4n]) }], "got 4 at [1]", "at most 3"],
  ["crossEntropy", () => [square(), tensor([1n, 2n])], "got 2 at [1]", "indices of 0 to 1"],
  ["crossEntropy", () => [square(), tensor([-1n, 0n])], "got -1 at [0]", "indices of 0 to 1"],
  ["crossEntropy", () => [ones([3, 0]), far()], "got 3", "an axis without elements"],
  ["gather", () => [ones([0]), far(), { dim: 0 }], "got 3", "an axis without elements"],
  ["indexSelect", () => [ones([0]), far(), { dim: 0 }], "got 3", "an axis without elements"],
  ["select", () => [three(), 0, 3], "got 3", "has -3 to 2"],
  ["narrow", () => [three(), 0, 2, 2], "got 2 elements from 2 on", "has 3"],
]);

const steps = rowsOf("a step that leads nowhere", ArgumentError, [
  ["slice", ({ x }) => [x, { step: -1 }], "got -1", "expected step to be a whole number of at least 1"],
  ["slice", ({ x }) => [x, { step: 0 }], "got 0", "expected step to be a whole number of at least 1"],
  ["arange", () => [0, 5, -1], "a step of -1", "change the sign"],
  ["arange", () => [0, 5, 0], "step", "other than 0"],
]);

const ragged = rowsOf("ragged arrays", ShapeError, [
  ["tensor", () => [[[1, 2], [3]]], "got an array of 1", "an array of 2 at depth 1"],
  ["tensor", () => [[[1], 2]], "got a single value", "with an array of 1"],
  ["tensor", () => [[1, [2]]], "got an array of 1", "with a single value"],
]);

const wholeSizes = "expected sizes to be whole numbers of at least 0";
const sizes = [
  ...rowsOf("a size that is none", ShapeError, [
    ...each("zeros ones empty rand randn", () => [[Number.NaN]], "got [NaN]", wholeSizes),
    ...each("zeros ones empty rand randn", () => [[2, Number.POSITIVE_INFINITY]], "got [2, Infinity]", wholeSizes),
    ...each("zeros ones empty", () => [null], "got null", "expected shape to be a list of sizes"),
    ["full", () => [[-1], 1], "got [-1]", wholeSizes],
    ["randint", () => [0, 1, [0.5]], "got [0.5]", wholeSizes],
    ...each("uniform normal", () => [0, 1, [-1]], "got [-1]", wholeSizes),
    ["bernoulli", () => [0.5, [Number.NaN]], "got [NaN]", wholeSizes],
    ["bernoulli", () => [0.5], "got undefined", "expected shape to be a list of sizes"],
    ["eye", () => [Number.NaN], "got [NaN, NaN]", wholeSizes],
    ["eye", () => [2, -1], "got [2, -1]", wholeSizes],
    ...each("randperm", () => [Number.POSITIVE_INFINITY], "got [Infinity]", wholeSizes),
    ["linspace", () => [0, 1, Number.NaN], "got [NaN]", wholeSizes],
    ["fromArray", () => [new Float32Array(1), [Number.NaN]], "got [NaN]", wholeSizes],
    ["tensor", () => [[1], { shape: [Number.NaN] }], "got [NaN]", wholeSizes],
    ["reshape", ({ x }) => [x, [Number.NaN]], "float32[", "do not fill [NaN]"],
    ["expand", ({ value }) => [value, [Number.POSITIVE_INFINITY]], "got [Infinity]", wholeSizes],
    ["unflatten", () => [three(), 0, [Number.NaN]], "sizes [NaN]", "axis 0 of float32[3]"],
    ...each("repeat tile", () => [three(), [Number.NaN]], "got [NaN]", wholeSizes),
    ["repeat", () => [three(), [-1]], "got [-1]", wholeSizes],
    ["pad", () => [three(), [Number.NaN, 0]], "got [NaN, 0]", "expected two whole numbers"],
    ["narrow", () => [three(), 0, Number.NaN, 1], "from NaN on", "has 3"],
    ["narrow", () => [three(), 0, 0, -1], "-1 elements", "has 3"],
    ["select", () => [three(), 0, Number.NaN], "got NaN", "has -3 to 2"],
  ]),
  ...rowsOf("a number that is none", ArgumentError, [
    ...[-1, 0.5, 171, Number.NaN].map((n): Row => ["polygamma", ({ x }) => [n, x], `got ${n}`, "from 0 to 170"]),
    ["arange", () => [Number.NaN], "got NaN", "end to be a finite number"],
    ["linspace", () => [0, Number.POSITIVE_INFINITY, 2], "got Infinity", "end to be a finite number"],
    ["uniform", () => [1, 0, [2]], "got 1 and 0", "finite numbers low ≤ high"],
    ["normal", () => [0, -1, [2]], "got 0 and -1", "a finite std ≥ 0"],
    ["randint", () => [0, 0.5, [2]], "got 0.5", "to be whole numbers"],
    ["randint", () => [3, 3, [2]], "got 3 and 3", "expected low < high"],
    ["randintLike", ({ x }) => [x, 3, 3], "got 3 and 3", "expected low < high"],
    ["bernoulli", () => [2, [2]], "got 2", "a probability in [0, 1]"],
    ["dropout", ({ x }) => [x, { p: 1.5 }], "got 1.5", "in [0, 1]"],
    ["dropout", ({ x }) => [x, { p: Number.NaN }], "got NaN", "in [0, 1]"],
    ...each("layerNorm rmsNorm", ({ x }) => [x, { eps: Number.NaN }], "got NaN", "a finite number of at least 0"),
    ...each("layerNorm rmsNorm", ({ x }) => [x, { eps: -1 }], "got -1", "a finite number of at least 0"),
    ...each(
      "addLayerNorm addRmsNorm",
      ({ x, y }) => [x, y, { eps: Number.POSITIVE_INFINITY }],
      "got Infinity",
      "a finite number",
    ),
    ...each("layerNorm rmsNorm", ({ x }) => [x, { epsilon: 1 }], 'no option "epsilon"', "weight"),
    ["hardtanh", ({ x }) => [x, { minVal: 2 }], "expected minVal up to maxVal 1", "got 2"],
    ["celu", ({ x }) => [x, { alpha: 0 }], "expected an alpha other than 0", "got 0"],
    ["gelu", ({ x }) => [x, { approximate: "erf" }], 'got "erf"', 'expected approximate to be "none" or "tanh"'],
    ["rope", ({ x }) => [x, { offset: 0.5 }], "got 0.5", "offset to be a whole number"],
    ["rope", ({ x }) => [x, { base: 0 }], "got 0", "base to be a number above 0"],
    ["rope", ({ x }) => [x, { theta: 1e6 }], 'no option "theta"', "offset, positions, base"],
    ["rope", ({ x }) => [x, { scaling: { type: "ntk" } }], 'got "ntk"', "linear, llama3, yarn"],
    ["rope", ({ x }) => [x, { scaling: { type: "linear" } }], "got undefined", "factor of scaling"],
    [
      "rope",
      ({ x }) => [x, { scaling: { type: "yarn", factor: 2, originalContextLength: -1 } }],
      "got -1",
      "originalContextLength of scaling",
    ],
    [
      "rope",
      ({ x }) => [
        x,
        {
          scaling: {
            type: "llama3",
            factor: 8,
            lowFrequencyFactor: 4,
            highFrequencyFactor: 4,
            originalContextLength: 8192,
          },
        },
      ],
      "highFrequencyFactor to be above lowFrequencyFactor 4",
      "got 4",
    ],
    ["multinomial", () => [three(), Number.NaN], "got NaN", "a whole number from 1 to 3"],
    ["multinomial", () => [three(), 4], "got 4", "a whole number from 1 to 3"],
    ["split", () => [three(), Number.NaN], "got NaN", "a whole number of at least 0"],
    ["split", () => [three(), 0], "got 0", "expected a size of at least 1"],
    ["chunk", () => [three(), 0], "got 0", "expected chunks to be a whole number of at least 1"],
    ["topk", () => [three(), 4], "got 4", "0 to 3"],
    ["topk", () => [three(), Number.NaN], "got NaN", "0 to 3"],
    ["slice", () => [three(), { start: Number.NaN }], "got NaN", "expected start to be a whole number"],
    ...each("diag tril triu", ({ x }) => [x, { diagonal: 0.5 }], "got 0.5", "expected diagonal to be a whole number"),
    ["diagonal", ({ x }) => [x, { offset: Number.NaN }], "got NaN", "expected diagonal to be a whole number"],
    ["roll", () => [three(), 0.5], "got 0.5", "expected a shift to be a whole number"],
    ["roll", () => [three(), []], "got []", "expected one shift or more"],
    ["roll", () => [three(), [], { dims: [] }], "got []", "expected one shift or more"],
    ["oneHot", () => [far(), { numClasses: Number.NaN }], "got NaN", "a whole number of at least 1"],
    ["oneHot", () => [ones([0], whole)], "int64[0] has no largest index", "give numClasses"],
    ["norm", () => [three(), { p: Number.NaN }], "got NaN", "expected p to be a number"],
    ...each("cumsum cumprod", () => [three()], "got nothing for it", "expected dim"),
    [
      "indexAdd",
      ({ places }) => [places, places, places, { dim: 0, alpha: 0.5 }],
      "got 0.5",
      "alpha to be a whole number",
    ],
    ...each(
      "embedding embeddingBag",
      ({ indices: own, x }) => [own, x, { paddingIndex: x.shape[0] }],
      "paddingIndex from",
      "rows, got",
    ),
    ["embeddingBag", ({ indices: own, x }) => [own, x, { mode: "min" }], 'got "min"', '"sum", "mean" or "max"'],
    ["embeddingBag", ({ places, x }) => [places, x], "expected offsets", "where bags begin"],
    [
      "embeddingBag",
      ({ indices: own, x, places }) => [own, x, { offsets: places }],
      "expected no offsets",
      "leave them out",
    ],
    [
      "embeddingBag",
      ({ indices: own, x, y }) => [own, x, { perSampleWeights: y }],
      'got "mean"',
      'mode "sum" with perSampleWeights',
    ],
    ...each(
      "mseLoss binaryCrossEntropyWithLogits",
      ({ x, y }) => [x, y, { reduction: "max" }],
      'got "max"',
      '"none", "sum" or "mean"',
    ),
    ["crossEntropy", ({ x, places }) => [x, places, { reduction: "max" }], 'got "max"', '"none"'],
    [
      "crossEntropy",
      ({ x, places }) => [x, places, { labelSmoothing: 2 }],
      "expected labelSmoothing",
      "from 0 to 1",
      "got 2",
    ],
    [
      "crossEntropy",
      ({ x, places }) => [x, places, { ignoreIndex: 0.5 }],
      "expected ignoreIndex",
      "a whole number",
      "got 0.5",
    ],
    ["crossEntropy", ({ x, y }) => [x, y, { ignoreIndex: 1 }], "expected no ignoreIndex", "name no class", "got 1"],
    ["addmm", ({ indices: own }) => [own, own, own, { alpha: 0.5 }], "got 0.5", "expected alpha to be a whole number"],
    ["pow", ({ bytes }) => [bytes, -1], "raised to -1", "convert them to a float"],
    [
      "div",
      () => [three(), 2, { roundingMode: "up" }],
      'got "up"',
      'expected roundingMode to be "floor" or "trunc" or null',
    ],
    ["toDType", () => [three(), "int8", { overflow: "wrap" }], 'got "wrap"', '"saturate" or "error"'],
    ["pad", () => [three(), [1, 1], { mode: "reflect" }], 'got "reflect"', 'expected mode to be "constant"'],
    ["einsum", ({ x }) => ["i?", x], 'has "?"', 'letters and one "..." are allowed'],
    ["einsum", () => ["ij"], "expected operands", "got nothing for it"],
    ...each("cat stack", () => [[]], "got an empty list", "expected at least one tensor"),
    ...each("add mul maximum lt", () => [three(), "2"], 'got "2"', "a number, a bigint or a boolean"),
    ["tensor", () => [["a"]], 'got "a"', "elements to be numbers, bigints or booleans"],
    ...each("full", () => [[2], "a"], 'got "a"', "a number, a bigint or a boolean"),
  ]),
];

const bytes = "uint8, which holds whole numbers from 0 to 255";
const overflows = rowsOf("a number that a dtype can't hold", DTypeError, [
  ["toDType", () => [tensor([1, 300]), "uint8", { overflow: "error" }], "element 1 is 300", "from 0 to 255"],
  ["toDType", () => [tensor([Number.NaN]), "int64", { overflow: "error" }], "element 0 is NaN", "whole numbers from"],
  ["tensor", () => [[300], { dtype: "uint8" }], "got 300 at [0]", "from 0 to 255"],
  ["full", () => [[2], 300, { dtype: "uint8" }], "got 300", "from 0 to 255"],
  ["fullLike", ({ bytes: own }) => [own, 300], "got 300", "from 0 to 255"],
  ["arange", () => [0, 300, { dtype: "uint8" }], "got 299", "uint8, 0 to 255"],
  ["linspace", () => [0, 300, 2, { dtype: "uint8" }], "got 300", "from 0 to 255"],
  ["randperm", () => [300, { dtype: "uint8" }], "got 299", "up to 255"],
  ["randint", () => [0, 300, [2], { dtype: "uint8" }], "0 to 299", "from 0 to 255"],
  ["randintLike", ({ bytes: own }) => [own, 0, 300], "0 to 299", "from 0 to 255"],
  ...each("add sub mul maximum minimum eq lt bitwiseAnd", ({ bytes: own }) => [own, 300], "300", bytes),
  ["clamp", ({ bytes: own }) => [own, { max: 300 }], "300", bytes],
  ["hardtanh", ({ bytes: own }) => [own], "-1", bytes],
  ...each("add_ sub_ mul_ copy_ fill_", ({ bytes: own }) => [own, 300], "300", bytes),
  ["where", ({ mask, bytes: own }) => [mask, own, 300], "300", bytes],
  ...each("maskedFill maskedFill_", ({ mask, bytes: own }) => [own, mask, 300], "300", bytes),
  ["maskedFill", ({ mask, bytes: own }) => [own, mask, Number.NaN], "NaN", bytes],
  ["pad", ({ bytes: own }) => [own, [1, 1], { value: 300 }], "300", bytes],
]);

/** More than any machine has, without memory of its own: one element that is repeated. */
const COUNT = 2 ** 42;
const endless = ({ value }: Operands) => expand(value, [COUNT]);
const wide = ({ value }: Operands) => expand(value, [2 ** 21, 2 ** 21]);
const tall = ({ value }: Operands) => expand(value, [2 ** 21]);
const named = ({ indices: own }: Operands) => expand(select(slice(own, { end: 1 }), 1, 0), [COUNT]);
const noMemory = "there is no memory for the result";
const everyElement =
  "relu6 hardtanh dropout clone contiguous sort argsort softmax logSoftmax " +
  "zerosLike onesLike emptyLike randLike randnLike bernoulli";
const reducing: readonly Name[] = ["logsumexp"];
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
    [...new Set([...kinds.unary, ...kinds.float])].filter((name) => !reducing.includes(name)),
    (all) => [endless(all)],
    noMemory,
    "bytes",
  ),
  ...each(kinds.binary, (all) => [endless(all), all.value], noMemory, "bytes"),
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

/** A root whose graph was passed once. */
const passed = (compute: (x: Tensor) => Tensor, x: Tensor): Tensor => {
  const root = library.sum(compute(leafOf(x)));
  library.backward(root);
  return root;
};
const spent = (name: string, compute: (x: Tensor, all: Operands) => Tensor): Row => [
  "backward",
  (all) => [passed((x) => compute(x, all), all.vector)],
  `what ${name} saved was freed`,
  "retainGraph: true",
];
const graphs = rowsOf("a graph that is none", AutogradError, [
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
  ...each("add_ sub_ mul_ div_ copy_", ({ x, y }) => [x, leafOf(y)], "takes part in a graph", "noGrad(() => …)"),
  ["fill_", ({ x }) => [leafOf(x), 0], "a leaf float32[", "noGrad(() => …)"],
  ["zero_", ({ x }) => [leafOf(x)], "a leaf float32[", "noGrad(() => …)"],
  ["maskedFill_", ({ x, mask }) => [leafOf(x), mask, 0], "a leaf float32[", "noGrad(() => …)"],
  ["maskedFill_", ({ x, mask, value }) => [x, mask, leafOf(value)], "takes part in a graph", "noGrad(() => …)"],
]);
const repeats = rowsOf("elements that repeat", ArgumentError, [
  ...each("add_ sub_ mul_ div_ copy_ fill_", ({ value }) => [expand(value, [3]), 1], "float32[3] repeats", "clone()"),
  ["zero_", ({ value }) => [expand(value, [3])], "float32[3] repeats", "clone()"],
  ["maskedFill_", ({ value }) => [expand(value, [3]), tensor(true), 0], "float32[3] repeats", "change a clone()"],
]);

/** Every mistake but those that are made of right calls: see bad_input.test.ts. */
export const mistakes: readonly Mistake[] = [
  ...[shapes, dtypes, ranks, axes, indices, steps, ragged, sizes, overflows, graphs, repeats].flat(),
];
