/** Lowerings of matrix products, products along axes and scans. */
import { noGrad } from "../../autograd/modes.ts";
import { type ComplexCall, defineLowering } from "../../backend/complex.ts";
import { execute } from "../../backend/dispatch.ts";
import { primitiveOf } from "../../backend/primitive.ts";
import { tupleOf } from "../../core/tuples.ts";
import { realDType } from "../../tensor/dtype.ts";
import { plane } from "../../tensor/planes.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { contiguous } from "../copy/copy.ts";
import { ones, onesLike, zerosLike } from "../creation/full.ts";
import { add, mul, sub } from "../elementwise/arithmetic.ts";
import { cat } from "../join/cat.ts";
import { flip } from "../join/flip.ts";
import type { ProductScale } from "../matmul/primitive.ts";
import type { ReductionAttributes } from "../reduction/primitive.ts";
import type { ScanAttributes } from "../scan/primitive.ts";
import { permute } from "../view/permute.ts";
import { reshape } from "../view/reshape.ts";
import { narrow } from "../view/slice.ts";
import { joinedParts } from "./planewise.ts";

/** Defines a lowering with operations on complex tensors, which it does not record. */
function define<Attributes>(
  primitive: string,
  compute: (inputs: readonly Tensor[], attributes: Attributes, call: ComplexCall) => Tensor,
): void {
  const lowered = (call: ComplexCall): Tensor[] =>
    noGrad(() => tidy(() => [compute(call.inputs, call.attributes as Attributes, call)]));
  defineLowering(primitive, { compute: lowered });
}

/** Computes alpha · a · b by four real products of contiguous parts. */
function matrixProduct([a, b]: readonly Tensor[], { alpha }: ProductScale, { specs, operation }: ComplexCall): Tensor {
  const [{ shape, dtype }] = tupleOf(specs, 1);
  const partsOf = (x: Tensor) =>
    tupleOf(
      ([0, 1] as const).map((part) => contiguous(plane(x, part))),
      2,
    );
  const [[are, aim], [bre, bim]] = [partsOf(a), partsOf(b)];
  const times = (x: Tensor, y: Tensor): Tensor =>
    execute(primitiveOf("matmul"), [x, y], shape, realDType(dtype), { alpha, beta: 0 } as never, operation);
  return joinedParts(sub(times(are, bre), times(aim, bim)), add(times(are, bim), times(aim, bre)), operation);
}

define("matmul", matrixProduct);
/** The second operand is the transposed weight. */
define<ProductScale>("linear", (inputs, scale, call) => {
  const [, , bias] = inputs;
  const product = matrixProduct(inputs, scale, call);
  return bias === undefined ? product : add(product, bias);
});
define<ProductScale>("addmm", (inputs, scale, call) => {
  const [, , input] = inputs;
  const product = matrixProduct(inputs, scale, call);
  return input === undefined ? product : add(product, mul(input, scale.beta));
});

/** Multiplies the elements along axes in pairs, as a tree. An empty product is 1. */
define<ReductionAttributes>("prod", ([x], { axes }, { specs }) => {
  const kept = [...x.shape.keys()].filter((axis) => !axes.includes(axis));
  const count = axes.reduce((size, axis) => size * x.shape[axis], 1);
  const last = kept.length;
  let rest: Tensor = reshape(permute(x, [...kept, ...axes]), [...kept.map((axis) => x.shape[axis]), count]);
  if (count === 0) return ones(specs[0].shape, { dtype: specs[0].dtype });
  for (let size = count; size > 1; size = Math.ceil(size / 2)) {
    const half = Math.floor(size / 2);
    const pairs = mul(narrow(rest, last, 0, half), narrow(rest, last, half, half));
    rest = size % 2 === 0 ? pairs : cat([pairs, narrow(rest, last, size - 1, 1)], last);
  }
  return reshape(rest, specs[0].shape);
});

/** Moves elements to the next index along an axis. The first becomes `filling`. */
function shifted(x: Tensor, axis: number, filling: (like: Tensor) => Tensor): Tensor {
  if (x.shape[axis] === 0) return x;
  return cat([filling(narrow(x, axis, 0, 1)), narrow(x, axis, 0, x.shape[axis] - 1)], axis);
}

/**
 * Computes h[k] = a[k] · h[k − 1] + x[k] in log₂ n steps: the step of distance d combines each element with the element
 * d before it (Hillis and Steele, "Data Parallel Algorithms", 1986). Without x, h is the cumulative product of a.
 */
function recurrence(a: Tensor, x: Tensor | null, axis: number): Tensor {
  const size = a.shape[axis];
  let [factors, sums] = [a, x];
  for (let step = 1; step < size; step *= 2) {
    const [first, later] = [
      (of: Tensor) => narrow(of, axis, 0, size - step),
      (of: Tensor) => narrow(of, axis, step, size - step),
    ];
    const joined = (of: Tensor, changed: Tensor) => cat([narrow(of, axis, 0, step), changed], axis);
    if (sums !== null) sums = joined(sums, add(mul(later(factors), first(sums)), later(sums)));
    factors = joined(factors, mul(later(factors), first(factors)));
  }
  return sums ?? factors;
}

/** Defines a scan, which runs over reversed elements in the other direction. */
function defineScan(primitive: string, scan: (x: Tensor, a: Tensor, axis: number) => Tensor): void {
  define<ScanAttributes>(primitive, ([x, a = x], { axis, reverse }) => {
    if (axis >= x.rank) {
      // a scalar, or one scalar for each example of vmap
      const [values, factors] = [x, a].map((each) => reshape(each, [...each.shape, 1])) as [Tensor, Tensor];
      return reshape(scan(values, factors, axis), x.shape);
    }
    if (!reverse) return scan(x, a, axis);
    return flip(scan(flip(x, axis), flip(a, axis), axis), axis);
  });
}

defineScan("cumprod", (x, _a, axis) => recurrence(x, null, axis));
defineScan("exclusiveCumprod", (x, _a, axis) => recurrence(shifted(x, axis, onesLike), null, axis));
defineScan("recurrence", (x, a, axis) => recurrence(a, x, axis));
defineScan("shiftedRecurrence", (x, a, axis) => recurrence(shifted(a, axis, onesLike), x, axis));
defineScan("shift", (x, _a, axis) => shifted(x, axis, zerosLike));
