/** Lowerings of linear algebra: implementations of its primitives for complex matrices. */

import { noGrad } from "../../autograd/modes.ts";
import type { OutputSpec } from "../../backend/allocation.ts";
import type { Primitive } from "../../backend/backend.ts";
import { type ComplexCall, defineLowering } from "../../backend/complex.ts";
import { executeMany } from "../../backend/dispatch.ts";
import { primitiveOf } from "../../backend/primitive.ts";
import { lastElement } from "../../core/collections.ts";
import type { Operands } from "../../core/operands.ts";
import { tupleOf } from "../../core/tuples.ts";
import { conjugate } from "../../ops/complex/part.ts";
import { joinedParts } from "../../ops/complex/planewise.ts";
import { contiguous } from "../../ops/copy/copy.ts";
import { eye } from "../../ops/creation/eye.ts";
import { abs, add, mul, neg, sign } from "../../ops/elementwise/arithmetic.ts";
import { gt } from "../../ops/elementwise/comparison.ts";
import { floorDivide } from "../../ops/elementwise/division.ts";
import { where } from "../../ops/elementwise/where.ts";
import { gather } from "../../ops/indexing/gather.ts";
import { cat, stack } from "../../ops/join/cat.ts";
import { plainMatmul as matmul } from "../../ops/matmul/plain_matmul.ts";
import { argmax } from "../../ops/reduction/extrema.ts";
import { expand } from "../../ops/view/expand.ts";
import { reshape } from "../../ops/view/reshape.ts";
import { narrow, select } from "../../ops/view/slice.ts";
import { complexDType, type DType, isComplex, realDType } from "../../tensor/dtype.ts";
import { type Part, plane } from "../../tensor/planes.ts";
import { rowMajorStrides, type Shape } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { permuteRows } from "../lu/factor.ts";
import { dense, matricesOf, mH, mT } from "../matrices.ts";
import {
  complexBidiagonal,
  complexCholesky,
  complexEig,
  complexLu,
  complexQr,
  complexTriangular,
  complexTridiagonal,
} from "./primitives.ts";

/** Defines a lowering by operations, which are not recorded. */
function define<Attributes>(
  primitive: string,
  compute: (inputs: Operands<Tensor>, attributes: Attributes, call: ComplexCall) => readonly Tensor[],
): void {
  const lowered = (call: ComplexCall): Tensor[] =>
    noGrad(() => tidy(() => [...compute(call.inputs as Operands<Tensor>, call.attributes as Attributes, call)]));
  defineLowering(primitive, { compute: lowered });
}

/** A view of complex matrices as pairs of numbers: [batch, m, 2 n]. */
function pairsOf(x: Tensor): Tensor {
  const { batch, rows, columns } = matricesOf(x);
  const shape = [batch, rows, 2 * columns];
  const { storage } = dense(x);
  return new Tensor(storage, realDType(x.dtype), shape, rowMajorStrides(shape), 0);
}

/** A view of pairs of numbers as complex ones. */
const ofPairs = ({ storage, dtype }: Tensor, shape: Shape): Tensor =>
  new Tensor(storage, complexDType(dtype), shape, rowMajorStrides(shape), 0);

/** The spec of complex results, as pairs of numbers. */
function pairsSpec(shape: Shape, dtype: DType): OutputSpec {
  const [rows, columns] = tupleOf(shape.slice(-2), 2);
  const batch = shape.slice(0, -2).reduce((product, size) => product * size, 1);
  return { shape: [batch, rows, 2 * columns], dtype: realDType(dtype) };
}

/** Runs a primitive on pairs, and returns results of the shapes and dtypes of `specs`. */
function run<Attributes>(
  primitive: Primitive<Attributes>,
  inputs: readonly Tensor[],
  specs: readonly OutputSpec[],
  attributes: Attributes,
  operation: string,
): Tensor[] {
  const results = executeMany(
    primitive,
    inputs,
    specs.map((spec) => (isComplex(spec.dtype) ? pairsSpec(spec.shape, spec.dtype) : spec)),
    attributes,
    operation,
  );
  return specs.map(({ shape, dtype }, at) => (isComplex(dtype) ? ofPairs(results[at], shape) : results[at]));
}

define("cholesky", ([a], _, { specs, operation }) =>
  run(complexCholesky, [pairsOf(a)], specs, matricesOf(a), operation),
);

define<{ pivot: boolean }>("luFactor", ([a], { pivot }, { specs, operation }) =>
  run(complexLu, [pairsOf(a)], specs, { ...matricesOf(a), pivot }, operation),
);

interface Triangle {
  readonly upper: boolean;
  readonly unitDiagonal: boolean;
}

function triangular(a: Tensor, b: Tensor, triangle: Triangle, operation: string): Tensor {
  const spec = { shape: b.shape, dtype: b.dtype };
  return run(complexTriangular, [pairsOf(a), pairsOf(b)], [spec], { ...matricesOf(b), ...triangle }, operation)[0];
}

define<Triangle>("solveTriangular", ([a, b], triangle, { operation }) => [triangular(a, b, triangle, operation)]);

/** Solves A X = B, or Aᵀ X = B, from the factors of A = P L U. */
function substituted(lu: Tensor, pivots: Tensor, b: Tensor, isTransposed: boolean, operation: string): Tensor {
  const swaps = pivots as Tensor<"int32">;
  const solve = (matrix: Tensor, side: Tensor, upper: boolean, unitDiagonal: boolean): Tensor =>
    triangular(matrix, side, { upper, unitDiagonal }, operation);
  if (!isTransposed) return solve(lu, solve(lu, permuteRows(b, swaps, false), false, true), true, false);
  const turned = contiguous(mT(lu));
  return permuteRows(solve(turned, solve(turned, b, false, false), true, true), swaps, true);
}

define<{ adjoint: boolean }>("luSolve", ([lu, pivots, b], { adjoint }, { operation }) => [
  substituted(lu, pivots, b, adjoint, operation),
]);

define("solve", ([a, b], _, { specs, operation }) => {
  const batch = a.shape.slice(0, -2);
  const factorSpecs: OutputSpec[] = [
    { shape: a.shape, dtype: a.dtype },
    { shape: a.shape.slice(0, -1), dtype: "int32" },
    { shape: batch, dtype: "int32" },
  ];
  const [lu, pivots, info] = tupleOf(
    run(complexLu, [pairsOf(a)], factorSpecs, { ...matricesOf(a), pivot: true }, operation),
    3,
  );
  const right = b ?? expand(eye(lastElement(a.shape), { dtype: a.dtype }), a.shape);
  const x = substituted(lu, pivots, right, false, operation);
  return [x, info, lu, pivots].slice(0, specs.length);
});

define<{ width: number }>("qr", ([a], { width }, { specs, operation }) =>
  run(complexQr, [pairsOf(a)], specs, { ...matricesOf(a), width }, operation),
);

/** A complex matrix times a real one. */
function timesReal(a: Tensor, b: Tensor, operation: string): Tensor {
  const product = (part: Part): Tensor => matmul(contiguous(plane(a, part)), b);
  return joinedParts(product(0), product(1), operation);
}

/** The phase of the element of largest absolute value in each column, the first on ties; […, 1, n]. */
function phasesOf(x: Tensor): Tensor {
  const largest = argmax(abs(x), { dim: -2, keepdim: true });
  return sign(gather(x, -2, largest));
}

define<{ upper: boolean; vectors: boolean }>("eigh", ([a], { upper, vectors }, { operation }) => {
  const { batch, rows: size } = matricesOf(a);
  const { shape } = a;
  const lead = shape.slice(0, -2);
  const [t, q, notFinite] = tupleOf(
    run(
      complexTridiagonal,
      [pairsOf(a)],
      [
        { shape, dtype: realDType(a.dtype) },
        { shape, dtype: a.dtype },
        { shape: lead, dtype: "int32" },
      ],
      { batch, size, upper },
      operation,
    ),
    3,
  );
  const found = executeMany(
    primitiveOf("eigh"),
    [t],
    [
      { shape: shape.slice(0, -1), dtype: t.dtype },
      { shape: lead, dtype: "int32" },
      ...(vectors ? [{ shape, dtype: t.dtype }] : []),
    ],
    { upper: false, vectors } as never,
    operation,
  );
  const info = where(gt(notFinite, 0), notFinite, found[1]);
  if (!vectors) return [found[0], info];
  const columns = timesReal(q, found[2], operation);
  return [found[0], info, a.size === 0 ? columns : mul(columns, conjugate(phasesOf(columns)))];
});

interface Decomposition {
  readonly u: Tensor | undefined;
  readonly s: Tensor;
  readonly vh: Tensor | undefined;
  readonly info: Tensor;
}

/** Decomposes matrices with at least as many rows as columns. With `full`, U is square. */
function decomposed(a: Tensor, vectors: boolean, full: boolean, operation: string): Decomposition {
  const { batch, rows, columns } = matricesOf(a);
  const lead = a.shape.slice(0, -2);
  const square = [...lead, columns, columns];
  const width = vectors ? (full ? rows : columns) : 0;
  const real = realDType(a.dtype);
  const [b, q, ph] = tupleOf(
    run(
      complexBidiagonal,
      [pairsOf(a)],
      [
        { shape: square, dtype: real },
        { shape: [...lead, rows, width], dtype: a.dtype },
        { shape: [...lead, columns, vectors ? columns : 0], dtype: a.dtype },
      ],
      { batch, rows, columns, width },
      operation,
    ),
    3,
  );
  const values = { shape: [...lead, columns], dtype: real };
  const info = { shape: lead, dtype: "int32" } as const;
  const sides = { shape: square, dtype: real };
  const specs: OutputSpec[] = vectors ? [sides, values, sides, info] : [values, info];
  const found = executeMany(primitiveOf("svd"), [b], specs, { vectors, full: false } as never, operation);
  if (!vectors) return { u: undefined, s: found[0], vh: undefined, info: found[1] };
  const left = timesReal(narrow(q, -1, 0, columns), found[0], operation);
  const u = width > columns ? cat([left, narrow(q, -1, columns, width - columns)], -1) : left;
  const { dtype } = found[2];
  const pairs = new Tensor(
    ph.storage,
    dtype,
    [batch, columns, 2 * columns],
    rowMajorStrides([batch, columns, 2 * columns]),
    0,
  );
  const vh = ofPairs(matmul(reshape(found[2], [batch, columns, columns]), pairs), square);
  return { u, s: found[1], vh, info: found[3] };
}

/**
 * Makes the element of largest absolute value positive in each column of U, and in each row of Vᴴ that has no
 * corresponding column of U.
 */
function oriented(u: Tensor, vh: Tensor): [u: Tensor, vh: Tensor] {
  if (u.size === 0 && vh.size === 0) return [u, vh];
  const [left, right] = [lastElement(u.shape), vh.shape.at(-2)!];
  const count = Math.min(left, right);
  const ofU = u.size === 0 ? undefined : phasesOf(u);
  const turned = ofU ? mul(u, conjugate(ofU)) : u;
  if (vh.size === 0) return [turned, vh];
  const first = narrow(vh, -2, 0, count);
  const parts = [ofU && count > 0 ? mul(first, mT(narrow(ofU, -1, 0, count))) : first];
  if (right > count) {
    const rest = narrow(vh, -2, count, right - count);
    parts.push(mul(rest, conjugate(mT(phasesOf(mT(rest))))));
  }
  return [turned, parts.length === 1 ? parts[0] : cat(parts, -2)];
}

define<{ vectors: boolean; full: boolean }>("svd", ([a], { vectors, full }, { operation }) => {
  const { rows, columns } = matricesOf(a);
  const isTall = rows >= columns;
  const { u, s, vh, info } = decomposed(isTall ? a : mH(a), vectors, full, operation);
  if (!u || !vh) return [s, info];
  const [left, right] = oriented(...((isTall ? [u, vh] : [mH(vh), mH(u)]) as [Tensor, Tensor]));
  return [left, s, right, info];
});

/**
 * Solves least squares with the real matrix whose blocks [re, −im; im, re] are the elements of A. Its columns come in
 * pairs: columns 2 j and 2 j + 1 stand for column j of A, so its rank is twice the rank of A.
 */
define<{ isPivoted: boolean; rcond: number }>("lstsq", ([a, b], attributes, { specs, operation }) => {
  const { batch, rows, columns } = matricesOf(a);
  const { columns: sides } = matricesOf(b);
  const partOf = (x: Tensor, part: Part): Tensor => contiguous(plane(x, part));
  const [re, im] = tupleOf(
    ([0, 1] as const).map((part) => reshape(partOf(a, part), [batch, rows, columns])),
    2,
  );
  const pairs = stack([cat([re, im], -2), cat([neg(im), re], -2)], -1);
  const matrix = reshape(pairs, [batch, 2 * rows, 2 * columns]);
  const right = ([0, 1] as const).map((part) => reshape(partOf(b, part), [batch, rows, sides]));
  const [x, rank, info] = executeMany(
    primitiveOf("lstsq"),
    [matrix, cat(right, -2)],
    [
      { shape: [batch, 2 * columns, sides], dtype: re.dtype },
      ...[1, 2].map(() => ({ shape: [batch], dtype: "int32" as const })),
    ],
    attributes as never,
    operation,
  ) as [Tensor, Tensor, Tensor];
  const found = reshape(x, [batch, columns, 2, sides]);
  const solution = joinedParts(select(found, 2, 0), select(found, 2, 1), operation);
  const halved = (counts: Tensor): Tensor => floorDivide(add(counts, 1), 2);
  return [solution, halved(rank), halved(info)].map((result, at) => reshape(result, specs[at].shape));
});

define<{ vectors: boolean }>("eig", ([a], { vectors }, { specs, operation }) => {
  const { batch, rows: size } = matricesOf(a);
  const complex = isComplex(a.dtype);
  const [values, ...others] = specs as [OutputSpec, ...OutputSpec[]];
  const flat = { shape: [batch, 1, size], dtype: values.dtype };
  const results = run(
    complexEig,
    [complex ? pairsOf(a) : dense(a)],
    [flat, ...others],
    { batch, size, complex, vectors },
    operation,
  );
  return [reshape(results[0], values.shape), ...results.slice(1)];
});
