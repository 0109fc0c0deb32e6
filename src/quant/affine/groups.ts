/** Fits the levels, scale and bias of a group of values. */
import type { Encode } from "./rounding.ts";

const { fround } = Math;

/** The scale and bias of a group. */
export interface Group {
  scale: number;
  bias: number;
}

/** How groups are quantized. */
export interface GroupRule {
  readonly bits: number;
  readonly symmetric: boolean;
  /** Rounds to the dtype of scales and biases. */
  readonly encode: Encode;
}

/** Rounds to the nearest integer, ties to even, as C's `rint`. */
function roundEven(value: number): number {
  const floor = Math.floor(value);
  const rest = value - floor;
  if (rest !== 0.5) return rest < 0.5 ? floor : floor + 1;
  return floor % 2 === 0 ? floor : floor + 1;
}

const levelOf = (value: number, { scale, bias }: Group, most: number): number => {
  const level = roundEven(fround(fround(value - bias) / scale));
  return level >= most ? most : level > 0 ? level : 0; // 0 / 0 gives NaN, which becomes level 0
};

/**
 * MLX's rule: the extreme of larger magnitude is represented exactly, and the scale is chosen so that 0 is a level.
 * Levels are computed before scale and bias are rounded to their dtype.
 */
function nearestAffine(values: Float32Array, { bits }: GroupRule, levels: Uint8Array): Group {
  let [low, high] = [values[0], values[0]];
  for (const value of values) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  const most = 2 ** bits - 1;
  const isLowLarger = Math.abs(low) > Math.abs(high);
  const step = Math.max(fround(fround(high - low) / most), fround(1e-7));
  const edge = isLowLarger ? low : high;
  const group = { scale: isLowLarger ? step : -step, bias: 0 };
  const zero = roundEven(fround(edge / group.scale));
  if (zero !== 0) {
    group.scale = fround(edge / zero);
    group.bias = edge;
  }
  for (let i = 0; i < values.length; i++) levels[i] = levelOf(values[i], group, most);
  return group;
}

/** Maps the extreme value to the lowest level exactly. */
function nearestSymmetric(values: Float32Array, { bits, encode }: GroupRule, levels: Uint8Array): Group {
  const center = 2 ** (bits - 1);
  let extreme = 0;
  for (const value of values) if (Math.abs(value) > Math.abs(extreme)) extreme = value;
  const group = symmetricGroup(encode(fround(extreme / -center)), center);
  for (let i = 0; i < values.length; i++) levels[i] = symmetricLevel(values[i], group.scale, center);
  return group;
}

const symmetricGroup = (scale: number, center: number): Group => ({ scale, bias: -center * scale });

const symmetricLevel = (value: number, scale: number, center: number): number =>
  scale === 0 ? center : Math.min(Math.max(roundEven(fround(value / scale)) + center, 0), 2 * center - 1);

/** Rounds a group to the nearest levels. The returned scale and bias are rounded to their dtype. */
export function nearest(values: Float32Array, rule: GroupRule, levels: Uint8Array): Group {
  if (rule.symmetric) return nearestSymmetric(values, rule, levels);
  const { scale, bias } = nearestAffine(values, rule, levels);
  return { scale: rule.encode(scale), bias: rule.encode(bias) };
}

/** The sum of the squares of the errors. */
function squaredError(values: Float32Array, levels: Uint8Array, { scale, bias }: Group): number {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += (values[i] - (levels[i] * scale + bias)) ** 2;
  return sum;
}

/** Returns the scale and bias with the smallest error for given levels; null if the levels do not determine them. */
function fitted(values: Float32Array, levels: Uint8Array, { bits, symmetric, encode }: GroupRule): Group | null {
  const count = values.length;
  const center = 2 ** (bits - 1);
  let [sum, squares, products, total] = [0, 0, 0, 0];
  for (let i = 0; i < count; i++) {
    const level = symmetric ? levels[i] - center : levels[i];
    sum += level;
    squares += level * level;
    products += level * values[i];
    total += values[i];
  }
  if (symmetric) return squares === 0 ? null : symmetricGroup(encode(products / squares), center);
  const spread = count * squares - sum * sum;
  if (spread === 0) return null;
  const scale = (count * products - sum * total) / spread;
  return { scale: encode(scale), bias: encode((total - scale * sum) / count) };
}

/** The maximum number of alternations between fitting the scale and the levels. */
const REFINEMENTS = 12;

/**
 * Starts with the nearest levels, then alternates: it fits scale and bias to the levels by least squares, and rounds to
 * the nearest levels again, as long as the error falls.
 */
export function leastSquares(values: Float32Array, rule: GroupRule, levels: Uint8Array): Group {
  let best = nearest(values, rule, levels);
  let least = squaredError(values, levels, best);
  const most = 2 ** rule.bits - 1;
  const trial = levels.slice();
  for (let round = 0; round < REFINEMENTS; round++) {
    const group = fitted(values, trial, rule);
    if (group === null || !Number.isFinite(group.scale) || group.scale === 0) break;
    for (let i = 0; i < values.length; i++)
      trial[i] = Math.min(Math.max(roundEven((values[i] - group.bias) / group.scale), 0), most);
    const error = squaredError(values, trial, group);
    if (!(error < least)) break;
    [best, least] = [group, error];
    levels.set(trial);
  }
  return best;
}
