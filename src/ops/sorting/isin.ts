import { noGrad } from "../../autograd/modes.ts";
import { underName } from "../../backend/dispatch.ts";
import { flag } from "../../core/kinds.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import { isFloat } from "../../tensor/dtype.ts";
import { tensorOrScalar } from "../../tensor/kinds.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { zeros } from "../creation/full.ts";
import { clamp } from "../elementwise/clamp.ts";
import { eq, ne } from "../elementwise/comparison.ts";
import { logicalAnd, logicalNot, logicalOr } from "../elementwise/logic.ts";
import { promoteOperands } from "../elementwise/operands.ts";
import { isnan } from "../elementwise/predicates.ts";
import type { Operand } from "../elementwise/types.ts";
import { where } from "../elementwise/where.ts";
import { take } from "../indexing/take.ts";
import { any } from "../reduction/logic.ts";
import { flatten } from "../view/flatten.ts";
import { select } from "../view/slice.ts";
import { fusesIsin, isAmong } from "./isin.cpu.ts";
import { searchsorted } from "./searchsorted.ts";
import { sort } from "./sort.ts";

/** Options of {@link isin}. */
export interface IsinOptions {
  /** Whether to return true for elements that are not in `testElements` instead. Default false. */
  invert?: boolean | undefined;
}

/**
 * Tests whether each element is in another tensor, which is sorted for the search. NaN equals nothing.
 *
 * @param elements a tensor or a number
 * @param testElements the elements to search: a tensor of any shape, or a number
 * @returns bool of the shape of `elements`
 *
 * @example
 * isin(tensor([1, 2, 3]), tensor([3, 1])); // bool [true, false, true]
 */
export function isin(elements: Operand, testElements: Operand, options?: IsinOptions): Tensor<"bool">;
export function isin(...values: unknown[]): Tensor<"bool"> {
  const { elements, testElements, invert } = isinParameters(values);
  if (isPlain(elements) && isPlain(testElements) && elements.dtype === testElements.dtype)
    if (noGrad(() => fusesIsin(elements, testElements))) return isAmong(elements, testElements, invert);
  return underName("isin", () =>
    tidy(() =>
      noGrad(() => {
        const [wanted, others] = promoteOperands("isin", [elements, testElements]);
        if (fusesIsin(wanted, others)) return isAmong(wanted, others, invert);
        const isThere = others.size === 0 ? zeros(wanted.shape, { dtype: "bool" }) : found(wanted, flatten(others));
        return invert ? logicalNot(isThere) : isThere;
      }),
    ),
  );
}
const isinParameters = parameters("isin", {
  elements: operand(tensorOrScalar),
  testElements: operand(tensorOrScalar),
  invert: named(flag, false),
});

const isPlain = (x: unknown): x is Tensor => x instanceof Tensor && x.isContiguous;

/** Up to this many elements, comparing with each takes less time than sorting and searching them. */
const FEW = 8;

/** Compares with each of a few elements. */
function foundAmongFew(elements: Tensor, others: Tensor): Tensor<"bool"> {
  let isThere = eq(elements, select(others, 0, 0));
  for (let at = 1; at < others.size; at++) isThere = logicalOr(isThere, eq(elements, select(others, 0, at)));
  return isThere;
}

/** Searches by bisection: an element is present if it equals the element at its insertion position. */
function found(elements: Tensor, others: Tensor): Tensor<"bool"> {
  if (others.size <= FEW) return foundAmongFew(elements, others);
  if (isFloat(elements.dtype)) return foundNumbers(elements, others);
  const [wanted, among] = [elements, others].map((each) => (each.dtype === "bool" ? toDType(each, "uint8") : each));
  return foundAmong(wanted, among);
}

/** Replaces NaN, which has no order, with ∞ for the search; ∞ itself is found only if `others` contains it. */
function foundNumbers(elements: Tensor, others: Tensor): Tensor<"bool"> {
  const { POSITIVE_INFINITY: infinity } = Number;
  const isThere = foundAmong(elements, where(isnan(others), infinity, others));
  return logicalAnd(isThere, logicalOr(ne(elements, infinity), any(eq(others, infinity))));
}

function foundAmong(elements: Tensor, others: Tensor): Tensor<"bool"> {
  const sorted = sort(others).values;
  const places = clamp(searchsorted(sorted, elements), { max: BigInt(sorted.size - 1) }) as Tensor<"int64">;
  return eq(take(sorted, places), elements);
}
