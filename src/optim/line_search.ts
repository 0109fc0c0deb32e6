/**
 * The line search of L-BFGS. It finds a step size that meets the strong Wolfe conditions, by cubic interpolation.
 *
 * Source: Nocedal and Wright, "Numerical Optimization", 2006, algorithms 3.5 and 3.6, with the bounds and limits of
 * PyTorch's `torch.optim.LBFGS`, which come from minFunc.
 */
import type { Tensor } from "../tensor/tensor.ts";

/** The objective at a step size t. */
export interface Point {
  readonly t: number;
  readonly loss: number;
  readonly gradient: Tensor;
  /** The derivative along the direction. */
  readonly slope: number;
}

/** The result of a search. */
export interface Found {
  readonly point: Point;
  readonly evaluations: number;
}

/** The constants of the strong Wolfe conditions: sufficient decrease (c₁) and curvature (c₂). */
const [DECREASE, CURVATURE] = [1e-4, 0.9];

/**
 * Finds a step size along a direction.
 *
 * @param largest the largest element of the direction
 * @param evaluate computes the objective at a step size
 */
export function strongWolfe(
  start: Point,
  firstStep: number,
  largest: number,
  evaluate: (t: number) => Point,
  { tolerance, most }: { readonly tolerance: number; readonly most: number },
): Found {
  let evaluations = 0;
  const evaluated = (t: number): Point => {
    evaluations++;
    return evaluate(t);
  };
  const isTooHigh = ({ t, loss }: Point): boolean => loss > start.loss + DECREASE * t * start.slope;
  const isFlat = ({ slope }: Point): boolean => Math.abs(slope) <= -CURVATURE * start.slope;

  const bracketing = bracketed(start, evaluated(firstStep), evaluated, { isTooHigh, isFlat, most });
  if (bracketing.isDone) return { point: bracketing.points[0], evaluations };
  const point = zoomed(bracketing, evaluated, { isTooHigh, isFlat, tolerance, most, largest });
  return { point, evaluations };
}

interface Bracket {
  readonly points: readonly Point[];
  readonly isDone: boolean;
  readonly iterations: number;
}

interface Conditions {
  readonly isTooHigh: (point: Point) => boolean;
  readonly isFlat: (point: Point) => boolean;
  readonly most: number;
}

/** Grows steps until two points bracket an acceptable one, or one is acceptable itself. */
function bracketed(
  start: Point,
  first: Point,
  evaluate: (t: number) => Point,
  { isTooHigh, isFlat, most }: Conditions,
): Bracket {
  let [previous, point] = [start, first];
  for (let iterations = 0; iterations < most; iterations++) {
    if (isTooHigh(point) || (iterations > 1 && point.loss >= previous.loss))
      return { points: [previous, point], isDone: false, iterations };
    if (isFlat(point)) return { points: [point], isDone: true, iterations };
    if (point.slope >= 0) return { points: [previous, point], isDone: false, iterations };
    const bounds = [point.t + 0.01 * (point.t - previous.t), point.t * 10] as const;
    const t = cubicMinimum(previous, point, bounds);
    [previous, point] = [point, evaluate(t)];
  }
  return { points: [start, point], isDone: false, iterations: most };
}

/** Shrinks the bracket until a point is acceptable or the bracket is too small, and returns the best point. */
function zoomed(
  { points, iterations }: Bracket,
  evaluate: (t: number) => Point,
  {
    isTooHigh,
    isFlat,
    tolerance,
    most,
    largest,
  }: Conditions & { readonly tolerance: number; readonly largest: number },
): Point {
  let [low, high] = sortedByLoss(points[0], points[1]);
  let wasNearEnd = false;
  for (let at = iterations; at < most; at++) {
    if (Math.abs(high.t - low.t) * largest < tolerance) break;
    const [least, greatest] = [Math.min(low.t, high.t), Math.max(low.t, high.t)];
    const found = cubicMinimum(low, high, [least, greatest]);
    const inner = insideOf(found, least, greatest, wasNearEnd);
    wasNearEnd = inner.isNearEnd;
    const point = evaluate(inner.t);
    if (isTooHigh(point) || point.loss >= low.loss) [low, high] = sortedByLoss(low, point);
    else if (isFlat(point)) return point;
    else [low, high] = [point, point.slope * (high.t - low.t) >= 0 ? low : high];
  }
  return low;
}

const sortedByLoss = (a: Point, b: Point): [low: Point, high: Point] => (a.loss <= b.loss ? [a, b] : [b, a]);

/** Moves a step size away from the ends of the bracket if it would be near an end twice in a row. */
function insideOf(
  t: number,
  least: number,
  greatest: number,
  wasNearEnd: boolean,
): { readonly t: number; readonly isNearEnd: boolean } {
  const margin = 0.1 * (greatest - least);
  if (Math.min(greatest - t, t - least) >= margin) return { t, isNearEnd: false };
  if (!wasNearEnd && t < greatest && t > least) return { t, isNearEnd: true };
  const isAtEnd = Math.abs(t - greatest) < Math.abs(t - least);
  return { t: isAtEnd ? greatest - margin : least + margin, isNearEnd: false };
}

/** The minimum, within bounds, of the cubic through two points and their slopes; without one, the bounds' middle. */
function cubicMinimum(a: Point, b: Point, [least, greatest]: readonly [number, number]): number {
  const d1 = a.slope + b.slope - (3 * (a.loss - b.loss)) / (a.t - b.t);
  const square = d1 ** 2 - a.slope * b.slope;
  if (!(square >= 0)) return (least + greatest) / 2;
  const d2 = Math.sqrt(square);
  const t =
    a.t <= b.t
      ? b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
      : a.t - (a.t - b.t) * ((a.slope + d2 - d1) / (a.slope - b.slope + 2 * d2));
  return Math.min(Math.max(t, least), greatest);
}
