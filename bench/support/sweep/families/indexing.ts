/** Reading and writing by indices, embeddings, and copies into another order. */
import type { DType } from "../../../../src/tensor/dtype.ts";
import { type Draw, indices, operand } from "../draw.ts";
import { at, type Drawn, each, type Family } from "../family.ts";

/** A tensor with an axis of at least two, and indices along it. */
function source(draw: Draw, count = draw.size(1, 4096)) {
  const shape = draw.anyShape(undefined, 256);
  const dim = draw.chance(0.5) ? 0 : draw.integer(0, shape.length - 1);
  return {
    shape,
    dim,
    x: operand(draw, shape, { dtype: draw.pick<DType>(["float32", "float32", "int64", "bfloat16"]) }),
    count,
  };
}

const replaced = (shape: readonly number[], dim: number, size: number): number[] => shape.with(dim, size) as number[];
const capped = (shape: readonly number[], dim: number, count: number): number => {
  const others = shape.reduce((product, size, axis) => (axis === dim ? product : product * size), 1);
  return Math.max(1, Math.min(count, Math.floor(2 ** 22 / others)));
};

/** Operations that select slices along an axis by a list of indices. */
function rowsOf(draw: Draw) {
  const { shape, dim, x, count } = source(draw);
  const index = indices(draw, [capped(shape, dim, count)], shape[dim]);
  return { x, dim, index, rows: operand(draw, replaced(shape, dim, index.shape[0]), { dtype: x.dtype }) };
}

/** Operations that select elements along an axis by indices of the same rank. */
function elementsOf(draw: Draw) {
  const { shape, dim, x, count } = source(draw);
  const chosen = replaced(shape, dim, capped(shape, dim, count));
  return { x, dim, index: indices(draw, chosen, shape[dim]), values: operand(draw, chosen, { dtype: x.dtype }) };
}

/** A mask with a drawn fraction of ones: it is true where bytes drawn from 0 to `high` are not zero. */
const mask = (draw: Draw, shape: readonly number[]) =>
  operand(draw, shape, { dtype: "bool", values: { low: 0, high: 1 } });

function lookUp(draw: Draw): Drawn {
  const [entries, width] = [draw.size(2, 2 ** 16), draw.size(1, 1024)];
  const rows = Math.min(entries, Math.max(2, Math.floor(2 ** 22 / width)));
  const index = indices(draw, draw.chance(0.5) ? [draw.size(1, 4096)] : [draw.size(1, 64), draw.size(1, 128)], rows);
  return { operands: [index, operand(draw, [rows, width])], gradients: draw.chance(0.5) };
}

export const indexing: Family = {
  gather(draw) {
    const { x, dim, index } = elementsOf(draw);
    return { operands: [x, index], args: [at(0), dim, at(1)], gradients: draw.chance(0.2), slack: 8 };
  },
  takeAlongDim(draw) {
    const { x, dim, index } = elementsOf(draw);
    return { operands: [x, index], args: [at(0), at(1), dim] };
  },
  take(draw) {
    const shape = draw.anyShape(2 ** 22);
    const size = shape.reduce((product, each) => product * each, 1);
    return { operands: [operand(draw, shape), indices(draw, [draw.size(1, 2 ** 18)], size)] };
  },
  indexSelect(draw) {
    const { x, dim, index } = rowsOf(draw);
    return { operands: [x, index], args: [at(0), dim, at(1)], gradients: draw.chance(0.2), slack: 8 };
  },
  selectScatter(draw) {
    const { x, dim, shape } = source(draw);
    const rows = operand(draw, shape.toSpliced(dim, 1), { dtype: x.dtype });
    return { operands: [x, rows], args: [at(0), at(1), dim, draw.integer(0, shape[dim] - 1)] };
  },
  sliceScatter(draw) {
    const { x, dim, shape } = source(draw);
    const start = draw.integer(0, shape[dim] - 1);
    const rows = operand(draw, replaced(shape, dim, shape[dim] - start), { dtype: x.dtype });
    return { operands: [x, rows], args: [at(0), at(1), dim, start] };
  },
  unravelIndex: (draw) => ({
    operands: [indices(draw, [draw.size(1, 2 ** 18)], 24)],
    args: [at(0), [2, 3, 4]],
  }),
  scatter(draw) {
    const { x, dim, index, values } = elementsOf(draw);
    return { operands: [x, index, values], args: [at(0), dim, at(1), at(2)], compared: null };
  },
  scatterAdd(draw) {
    const { x, dim, index, values } = elementsOf(draw);
    return { operands: [x, index, values], args: [at(0), dim, at(1), at(2)], slack: 64 };
  },
  scatterReduce(draw) {
    const { x, dim, index, values } = elementsOf(draw);
    return { operands: [x, index, values], args: [at(0), dim, at(1), at(2), draw.pick(["amax", "amin"])] };
  },
  indexAdd(draw) {
    const { x, dim, index, rows } = rowsOf(draw);
    return { operands: [x, index, rows], args: [at(0), dim, at(1), at(2)], slack: 64 };
  },
  indexCopy(draw) {
    const { x, dim, index, rows } = rowsOf(draw);
    return { operands: [x, index, rows], args: [at(0), dim, at(1), at(2)], compared: null };
  },
  indexFill(draw) {
    const { x, dim, index } = rowsOf(draw);
    return { operands: [x, index], args: [at(0), dim, at(1), 2] };
  },
  indexReduce(draw) {
    const { x, dim, index, rows } = rowsOf(draw);
    return { operands: [x, index, rows], args: [at(0), dim, at(1), at(2), draw.pick(["amax", "amin"])] };
  },
  indexPut(draw) {
    const { x, index, rows } = rowsOf(draw);
    const shaped = { ...rows, shape: replaced(x.shape, 0, index.shape[0]) };
    const first = { ...index, values: { low: 0, high: x.shape[0] - 1 } };
    return { operands: [x, first, shaped], args: [at(0), [at(1)], at(2)], compared: null };
  },
  put(draw) {
    const shape = draw.anyShape(2 ** 22);
    const size = shape.reduce((product, each) => product * each, 1);
    const index = indices(draw, [draw.size(1, 2 ** 18)], size);
    const values = operand(draw, index.shape);
    return { operands: [operand(draw, shape), index, values], compared: null, theirs: { name: "Tensor.put" } };
  },
  ...each("maskedFill maskedFill_", (draw, name) => {
    const shape = draw.anyShape();
    const theirs = name === "maskedFill" ? {} : { name: "Tensor.masked_fill_" };
    return {
      operands: [operand(draw, shape, { dtype: draw.float() }), mask(draw, shape)],
      args: [at(0), at(1), -1],
      theirs,
    };
  }),
  maskedSelect(draw) {
    const shape = draw.anyShape(2 ** 21);
    return { operands: [operand(draw, shape), mask(draw, shape)] };
  },
  maskedScatter(draw) {
    const shape = draw.anyShape(2 ** 21);
    return { operands: [operand(draw, shape), mask(draw, shape), operand(draw, shape)] };
  },
  at(draw) {
    const { x, index } = rowsOf(draw);
    const first = { ...index, values: { low: 0, high: x.shape[0] - 1 } };
    return { operands: [x, first], theirs: { name: "Tensor.__getitem__" } };
  },
  setAt(draw) {
    const shape = draw.anyShape(2 ** 21);
    const x = operand(draw, shape);
    const args = [at(0), [at(1)], 1];
    return { operands: [x, mask(draw, shape)], args, theirs: { name: "index_put_value" } };
  },
  embedding: (draw) => {
    const drawn = lookUp(draw);
    return { ...drawn, slack: 64, theirs: { name: "nn.functional.embedding" } };
  },
  embeddingBag(draw) {
    const { operands } = lookUp(draw);
    const [bags, length] = [draw.size(1, 512), draw.size(1, 64)];
    const index = { ...operands[0], shape: [bags, length] };
    const mode = draw.pick(["sum", "mean"]);
    return {
      operands: [index, operands[1]],
      options: { mode },
      slack: 32,
      theirs: { name: "nn.functional.embedding_bag" },
    };
  },
  oneHot(draw) {
    const classes = draw.size(2, 1000);
    const x = indices(draw, [draw.size(1, Math.max(2, Math.floor(2 ** 22 / classes)))], classes);
    return { operands: [x], args: [at(0), classes], theirs: { name: "nn.functional.one_hot" } };
  },
};
