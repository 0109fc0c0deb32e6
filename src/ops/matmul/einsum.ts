import { underName } from "../../backend/dispatch.ts";
import { ShapeError } from "../../core/errors.ts";
import { text } from "../../core/kinds.ts";
import { operand, parameters } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import type { DType } from "../../tensor/dtype.ts";
import { tensorsInline } from "../../tensor/kinds.ts";
import { checkRank } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { mul } from "../elementwise/arithmetic.ts";
import { promoteOperands } from "../elementwise/operands.ts";
import { type SumOf, sum } from "../reduction/sum.ts";
import { reshape } from "../view/reshape.ts";
import { checkSameDType } from "./checks.ts";
import { type Label, parseEquation } from "./equation.ts";
import { matmul } from "./matmul.ts";
import { diagonalOf, permuted } from "./views.ts";

/**
 * Computes an Einstein summation, as PyTorch's `einsum`: each axis of each operand has a letter. The result has the
 * axes after the arrow, and all other letters are summed over.
 *
 * A letter that occurs twice in one operand takes its diagonal. `...` stands for any number of axes; they are aligned
 * at the last axis and broadcast. All axes with one letter have equal sizes, or size 1, which broadcasts. Without an
 * arrow, the result has the letters that occur once, in alphabetical order. With several operands, the pair with the
 * cheapest product is contracted first, using {@link matmul} if the pair shares a letter that is summed over.
 *
 * @param equation such as `"bqhd,bkhd->bhqk"`; spaces are ignored
 * @param operands one by one, or in an array; of one dtype where a letter of both is summed over
 * @returns the operands' common dtype; int64 for integers and bools if a letter of only one operand is summed over, as
 * in {@link sum}
 *
 * @example
 * einsum("ij,jk->ik", a, b); // a matrix product
 * einsum("ii->", a); // a trace
 * einsum("...ij->...ji", a); // swaps the last two axes, without a copy
 *
 * @throws {ArgumentError} for an invalid equation, or a number of operands that differs from it.
 * @throws {ShapeError} if a rank differs from the number of letters, or sizes of one letter differ.
 * @throws {DTypeError} if two operands share a letter that is summed over, and their dtypes differ or are bool.
 */
export function einsum<D extends DType>(
  equation: string,
  ...operands: readonly Tensor<D>[] | [operands: readonly Tensor<D>[]]
): Tensor<D | SumOf<D>>;
export function einsum(...values: unknown[]): Tensor {
  const { equation, operands } = einsumParameters(values);
  const { operands: labels, output } = parseEquation(equation, operands);
  for (const operand of operands) operand.checkAlive("einsum");
  return underName("einsum", () => tidy(() => summed(equation, operands, labels, output)));
}
const einsumParameters = parameters("einsum", { equation: operand(text), operands: operand(tensorsInline) });

function summed(
  equation: string,
  operands: readonly Tensor[],
  labels: readonly (readonly Label[])[],
  output: readonly Label[],
): Tensor {
  const diagonals = operands.map((tensor, index) => withoutRepeats(equation, { tensor, labels: labels[index] }));
  const sizes = sizesOf(equation, diagonals);
  let terms = diagonals.map((term) => withoutBroadcasts(term, sizes));
  while (terms.length > 1) {
    const [first, second] = cheapestPair(terms, sizes);
    const others = terms.filter((_, index) => index !== first && index !== second);
    const needed = new Set([...output, ...others.flatMap((term) => term.labels)]);
    terms = others.toSpliced(first, 0, contract(terms[first], terms[second], needed, sizes));
  }
  const last = summedOut(terms[0], new Set(output));
  return inOrder(last, output);
}

/** A tensor with one label per axis. */
interface Term {
  readonly tensor: Tensor;
  readonly labels: readonly Label[];
}

/** The shape and labels of a {@link Term}, which suffice for planning. */
interface Labeled {
  readonly tensor: { readonly shape: readonly number[] };
  readonly labels: readonly Label[];
}

/** Takes diagonals until no label occurs twice. */
function withoutRepeats(equation: string, { tensor, labels }: Term): Term {
  const second = labels.findIndex((label, axis) => labels.indexOf(label) !== axis);
  if (second < 0) return { tensor, labels };
  const first = labels.indexOf(labels[second]);
  if (tensor.shape[first] !== tensor.shape[second])
    throw new ShapeError(
      "einsum",
      "shapesDiffer",
      `"${equation}" takes a diagonal along "${labels[first]}", but the axes have ${tensor.shape[first]} and ` +
        `${tensor.shape[second]} elements (${tensor.describe()})`,
    );
  return withoutRepeats(equation, {
    tensor: diagonalOf(tensor, first, second),
    labels: labels.toSpliced(second, 1),
  });
}

type Sizes = ReadonlyMap<Label, number>;

/** The size of each label: 1 only if all its axes have size 1. */
function sizesOf(equation: string, terms: readonly Labeled[]): Sizes {
  const sizes = new Map<Label, number>();
  for (const { tensor, labels } of terms) {
    for (const [axis, label] of labels.entries()) {
      const size = tensor.shape[axis];
      const known = sizes.get(label) ?? 1;
      if (known !== 1 && size !== 1 && known !== size)
        throw new ShapeError(
          "einsum",
          "shapesDiffer",
          `"${equation}": the axes "${label}" have ${known} and ${size} elements; sizes must be equal or 1`,
        );
      sizes.set(label, known === 1 ? size : known);
    }
  }
  return sizes;
}

/** Drops axes of size 1 whose label has a different size elsewhere: they broadcast. */
function withoutBroadcasts(term: Term, sizes: Sizes): Term {
  const { tensor, labels } = term;
  const stays = labels.map((label, axis) => tensor.shape[axis] === sizes.get(label));
  if (stays.every(Boolean)) return term;
  return {
    tensor: reshape(
      tensor,
      tensor.shape.filter((_, axis) => stays[axis]),
    ),
    labels: labels.filter((_, axis) => stays[axis]),
  };
}

/** The pair of terms whose product takes the fewest multiplications; the first of equally cheap pairs. */
function cheapestPair(terms: readonly Labeled[], sizes: Sizes): [number, number] {
  if (terms.length === 2) return [0, 1];
  const pairs = terms.flatMap((_, first) =>
    terms.slice(first + 1).map((_, offset) => [first, first + 1 + offset] as const),
  );
  const cost = ([first, second]: readonly [number, number]) =>
    [...new Set([...terms[first].labels, ...terms[second].labels])].reduce(
      (product, label) => product * sizes.get(label)!,
      1,
    );
  const [first, second] = pairs.reduce((best, pair) => (cost(pair) < cost(best) ? pair : best));
  return [first, second];
}

/** Multiplies two terms and sums over the labels that are no longer needed. */
function contract(x: Term, y: Term, needed: ReadonlySet<Label>, sizes: Sizes): Term {
  const left = summedOut(x, new Set([...needed, ...y.labels]));
  const right = summedOut(y, new Set([...needed, ...x.labels]));
  const shared = left.labels.filter((label) => right.labels.includes(label));
  const roles: Roles = {
    batch: shared.filter((label) => needed.has(label)),
    inner: shared.filter((label) => !needed.has(label)),
    rows: left.labels.filter((label) => !shared.includes(label)),
    columns: right.labels.filter((label) => !shared.includes(label)),
  };
  const labels = [...roles.batch, ...roles.rows, ...roles.columns];
  checkRank(
    "einsum",
    labels.map((label) => sizes.get(label)!),
  );
  if (roles.inner.length === 0) return { tensor: elementProduct(left, right, roles), labels };
  const pair = [left.tensor, right.tensor];
  const factors = x.tensor.dtype === y.tensor.dtype ? promoteOperands("einsum", pair) : pair; // sums may be int64
  checkSameDType("einsum", factors);
  const [a, b] = tupleOf(factors, 2);
  return { tensor: matrixProduct({ ...left, tensor: a }, { ...right, tensor: b }, roles), labels };
}

/** The roles of the labels of two terms in a matrix product. */
interface Roles {
  readonly batch: readonly Label[];
  readonly inner: readonly Label[];
  readonly rows: readonly Label[];
  readonly columns: readonly Label[];
}

function elementProduct(x: Term, y: Term, { batch, rows, columns }: Roles): Tensor {
  const left = inOrder(x, [...batch, ...rows]);
  const right = inOrder(y, [...batch, ...columns]);
  const opened = reshape(left, [...left.shape, ...columns.map(() => 1)]);
  const spread = reshape(right, [...shapeOf(y, batch), ...rows.map(() => 1), ...shapeOf(y, columns)]);
  return mul(opened, spread);
}

/** The maximum number of batch axes of a matrix product. */
const MAX_BATCH_RANK = 6;

function matrixProduct(x: Term, y: Term, roles: Roles): Tensor {
  const { batch, inner, rows, columns } = roles;
  const batchSizes = shapeOf(x, batch);
  const batchShape = batchSizes.length <= MAX_BATCH_RANK ? batchSizes : [count(batchSizes)];
  const k = count(shapeOf(x, inner));
  const left = reshape(inOrder(x, [...batch, ...rows, ...inner]), [...batchShape, count(shapeOf(x, rows)), k]);
  const right = reshape(inOrder(y, [...batch, ...inner, ...columns]), [...batchShape, k, count(shapeOf(y, columns))]);
  return reshape(matmul(left, right), [...batchSizes, ...shapeOf(x, rows), ...shapeOf(y, columns)]);
}

const count = (sizes: readonly number[]): number => sizes.reduce((product, size) => product * size, 1);

const shapeOf = ({ tensor, labels }: Labeled, chosen: readonly Label[]): number[] =>
  chosen.map((label) => tensor.shape[labels.indexOf(label)]);

const inOrder = ({ tensor, labels }: Term, chosen: readonly Label[]): Tensor =>
  permuted(
    tensor,
    chosen.map((label) => labels.indexOf(label)),
  );

/** Sums over the labels that are not kept. */
function summedOut({ tensor, labels }: Term, kept: ReadonlySet<Label>): Term {
  const dim = labels.flatMap((label, axis) => (kept.has(label) ? [] : [axis]));
  if (dim.length === 0) return { tensor, labels };
  return { tensor: sum(tensor, { dim }), labels: labels.filter((label) => kept.has(label)) };
}
