/**
 * Fits super-blocks by least squares. Each sub-block is fitted alone, and its scale is rounded to an integer times that
 * of the super-block. Then the scale (and minimum) of the super-block is fitted again to the levels and integers.
 */
import { fitRaised, fitScale, type Raised, raisedLevel, wholeLevels } from "./fit.ts";

const { f16round } = Math;
const VALUES = 256;
/** The maximum number of alternations between fitting the scales of a super-block and its levels. */
const ROUNDS = 3;

/** Sub-blocks with a scale and a minimum: (d · scale) · level − (dmin · minimum). */
export interface RaisedRule {
  /** Values per sub-block. */
  readonly size: number;
  /** The largest level, and the largest integer scale and minimum. */
  readonly most: number;
  readonly scaleMost: number;
}

export interface RaisedBlock {
  d: number;
  dmin: number;
  readonly scales: Uint8Array;
  readonly minima: Uint8Array;
  readonly levels: Uint8Array;
}

export function fitRaisedBlock(values: Float32Array, rule: RaisedRule): RaisedBlock {
  const { size, most, scaleMost } = rule;
  const fits = Array.from({ length: VALUES / size }, (_, sub) =>
    fitRaised(values.subarray(sub * size, (sub + 1) * size), most),
  );
  const d = f16round(Math.max(...fits.map(({ scale }) => scale)) / scaleMost);
  const dmin = f16round(Math.max(...fits.map(({ minimum }) => minimum)) / scaleMost);
  const rounded = (value: number, by: number) => (by === 0 ? 0 : Math.min(Math.round(value / by), scaleMost));
  const block: RaisedBlock = {
    d,
    dmin,
    scales: Uint8Array.from(fits, ({ scale }) => rounded(scale, d)),
    minima: Uint8Array.from(fits, ({ minimum }) => rounded(minimum, dmin)),
    levels: new Uint8Array(VALUES),
  };
  const errorOf = (candidate: RaisedBlock) => raisedError(values, rule, candidate);
  const best = refined(block, ROUNDS, errorOf, (candidate) => refitRaised(values, size, candidate));
  const isWorseThanZeros = Number.isFinite(d + dmin) && errorOf(best) > sumOfSquares(values);
  return isWorseThanZeros ? { ...best, d: 0, dmin: 0, levels: new Uint8Array(VALUES) } : best;
}

/**
 * The error of an all-zero block. It may be smaller than the fit's error if scales are tiny, because float16 rounds
 * tiny scales coarsely.
 */
const sumOfSquares = (values: Float32Array): number => values.reduce((sum, value) => sum + value * value, 0);

/** Sets the levels to the nearest ones, and returns the squared error. */
function raisedError(values: Float32Array, { size, most }: RaisedRule, block: RaisedBlock): number {
  const { d, dmin, scales, minima, levels } = block;
  let error = 0;
  for (let sub = 0; sub < scales.length; sub++) {
    const raised: Raised = { scale: d * scales[sub], minimum: dmin * minima[sub] };
    for (let i = sub * size; i < (sub + 1) * size; i++) {
      const level = raisedLevel(values[i], most, raised);
      levels[i] = level;
      error += (values[i] - (raised.scale * level - raised.minimum)) ** 2;
    }
  }
  return error;
}

/** The least-squares d and dmin: W ≈ d · (scale · level) − dmin · minimum. */
function refitRaised(values: Float32Array, size: number, block: RaisedBlock): RaisedBlock | undefined {
  let [aa, ab, bb, ax, bx] = [0, 0, 0, 0, 0];
  for (let i = 0; i < VALUES; i++) {
    const sub = Math.floor(i / size);
    const [a, b] = [block.scales[sub] * block.levels[i], -block.minima[sub]];
    [aa, ab, bb, ax, bx] = [aa + a * a, ab + a * b, bb + b * b, ax + a * values[i], bx + b * values[i]];
  }
  const determinant = aa * bb - ab * ab;
  const [d, dmin] =
    determinant > 0 ? [(ax * bb - bx * ab) / determinant, (bx * aa - ax * ab) / determinant] : [ax / aa, block.dmin];
  if (!(d > 0) || !(dmin >= 0)) return undefined;
  return { ...block, d: f16round(d), dmin: f16round(dmin), levels: block.levels.slice() };
}

/** Sub-blocks with a signed scale: (d · scale) · level. */
export interface CenteredRule {
  readonly size: number;
  /** Levels are from −center to center − 1, integer scales from −scaleCenter to scaleCenter − 1. */
  readonly center: number;
  readonly scaleCenter: number;
}

export interface CenteredBlock {
  d: number;
  readonly scales: Int8Array;
  readonly levels: Int8Array;
}

export function fitCenteredBlock(values: Float32Array, rule: CenteredRule): CenteredBlock {
  const { size, center, scaleCenter } = rule;
  const levels = new Int8Array(VALUES);
  const toLevel = wholeLevels(-center, center - 1);
  const fits = Array.from({ length: VALUES / size }, (_, sub) => {
    const [from, to] = [sub * size, (sub + 1) * size];
    return fitScale(values.subarray(from, to), levels.subarray(from, to), toLevel, -center);
  });
  const extreme = fits.reduce((found, scale) => (Math.abs(scale) > Math.abs(found) ? scale : found), 0);
  const d = f16round(extreme / -scaleCenter);
  const toScale = wholeLevels(-scaleCenter, scaleCenter - 1);
  const scales: Int8Array = Int8Array.from(fits, (scale) => (d === 0 ? 0 : toScale(scale / d)));
  const errorOf = (candidate: CenteredBlock) => centeredError(values, rule, candidate);
  const first: CenteredBlock = { d, scales, levels };
  return refined(first, ROUNDS, errorOf, (candidate) => refitCentered(values, size, candidate));
}

function centeredError(values: Float32Array, { size, center }: CenteredRule, block: CenteredBlock): number {
  const { d, scales, levels } = block;
  const toLevel = wholeLevels(-center, center - 1);
  let error = 0;
  for (let i = 0; i < VALUES; i++) {
    const scale = d * scales[Math.floor(i / size)];
    const level = scale === 0 ? 0 : toLevel(values[i] / scale);
    levels[i] = level;
    error += (values[i] - scale * level) ** 2;
  }
  return error;
}

function refitCentered(values: Float32Array, size: number, block: CenteredBlock): CenteredBlock | undefined {
  let [squares, products] = [0, 0];
  for (let i = 0; i < VALUES; i++) {
    const level = block.scales[Math.floor(i / size)] * block.levels[i];
    squares += level * level;
    products += level * values[i];
  }
  return squares === 0 ? undefined : { ...block, d: f16round(products / squares), levels: block.levels.slice() };
}

/** Alternates between fitting scales and levels, as long as the error falls. */
function refined<Block>(
  first: Block,
  rounds: number,
  /** Sets the levels of a block to the nearest ones. */
  errorOf: (block: Block) => number,
  refit: (block: Block) => Block | undefined,
): Block {
  let best = first;
  let least = errorOf(best);
  for (let round = 0; round < rounds; round++) {
    const next = refit(best);
    if (next === undefined) break;
    const error = errorOf(next);
    if (!(error < least)) break;
    [best, least] = [next, error];
  }
  return best;
}
