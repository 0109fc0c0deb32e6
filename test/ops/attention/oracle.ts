/**
 * Attention by its formula, with a matrix of all scores, forward and backward: the reference for every backend. Written
 * from the definition, without any code of the library. With roundings it is the plain low-precision computation of
 * FlashAttention's rule.
 */

/** How the formula is computed. */
export interface Arithmetic {
  /** Rounds stored values: scores, probabilities, results, in the dtype of the operands. */
  readonly store: (value: number) => number;
  /** Rounds sums. */
  readonly sum: (value: number) => number;
  /** Adds the magnitudes of all terms, to which an error of a result is relative. */
  readonly magnitudes?: boolean;
}

const identity = (value: number): number => value;
export const exact: Arithmetic = { store: identity, sum: identity };
export const magnitudes: Arithmetic = { ...exact, magnitudes: true };

/** One call, as plain numbers: row-major, [B, heads, rows, columns]. */
export interface Setup {
  readonly batch: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly queries: number;
  readonly keys: number;
  readonly dim: number;
  readonly valueDim: number;
  readonly q: readonly number[];
  readonly k: readonly number[];
  readonly v: readonly number[];
  readonly scale: number;
  readonly causal?: "bottom-right" | "top-left" | undefined;
  readonly window?: { readonly left?: number; readonly right?: number } | undefined;
  readonly softcap?: number | undefined;
  readonly mask?: Pairs | undefined;
  readonly bias?: Pairs | undefined;
  readonly sinks?: readonly number[] | undefined;
  /** Slopes [heads] for each batch or packed sequence; if there is only one entry, it applies to all. */
  readonly slopes?: readonly (readonly number[])[] | undefined;
  readonly packed?: { readonly queries: readonly number[]; readonly keys: readonly number[] } | undefined;
  /** The factors of dropout for each probability: 0 or 1 / (1 − p). */
  readonly keep?: Pairs | undefined;
}

/** A number for each pair: rank 4, sizes of 1 are broadcast. */
export interface Pairs {
  readonly shape: readonly number[];
  readonly values: readonly number[];
}

/** The cotangents: of `out`, and of `logSumExp` if it is used too. */
export interface Cotangents {
  readonly out: readonly number[];
  readonly logSumExp?: readonly number[] | undefined;
}

/** Results and gradients. */
export interface Attention {
  readonly out: number[];
  readonly logSumExp: number[];
  readonly q: number[];
  readonly k: number[];
  readonly v: number[];
  readonly bias: number[];
  readonly sinks: number[];
}

function placeIn({ shape: [batch, heads, queries, keys] }: Pairs, b: number, h: number, i: number, j: number): number {
  const row = ((batch === 1 ? 0 : b) * heads + (heads === 1 ? 0 : h)) * queries + (queries === 1 ? 0 : i);
  return row * keys + (keys === 1 ? 0 : j);
}

const at = (pairs: Pairs, b: number, h: number, i: number, j: number): number =>
  pairs.values[placeIn(pairs, b, h, i, j)];

const range = (length: number): number[] => Array.from({ length }, (_, index) => index);

/** The sequence of a row, its position there, and the sequence's length. */
interface Place {
  readonly sequence: number;
  readonly place: number;
  readonly length: number;
}

const placesOf = (bounds: readonly number[]): Place[] =>
  bounds.slice(1).flatMap((end, sequence) => {
    const length = end - bounds[sequence];
    return range(length).map((place) => ({ sequence, place, length }));
  });

/** The distance of a key from the key at the query's position. */
const distanceOf = ({ causal }: Setup, query: Place, key: Place): number =>
  key.place - query.place - (causal === "top-left" ? 0 : key.length - query.length);

/** Whether a query may attend to a key, judged by position alone. */
function attends(setup: Setup, query: Place, key: Place): boolean {
  const distance = distanceOf(setup, query, key);
  const { left = Infinity, right = Infinity } = setup.window ?? {};
  const isInWindow = distance >= -left && distance <= right;
  return query.sequence === key.sequence && isInWindow && (setup.causal === undefined || distance <= 0);
}

type Matrix = readonly (readonly number[])[];

/** Values computed from the scores of one head. */
interface Scores {
  /** 0 if the query attends to nothing. */
  readonly probabilities: Matrix;
  /** The slope of the softcap at each score. */
  readonly capSlopes: Matrix;
  readonly logSumExp: readonly number[];
}

/** The index of a head's first row. */
interface Head {
  readonly b: number;
  readonly h: number;
  /** The first row of its queries, and of its keys and values. */
  readonly query: number;
  readonly key: number;
}

function scoresOf(setup: Setup, { b, h, query, key }: Head, { store, sum }: Arithmetic): Scores {
  const { queries, keys, dim, q, k, scale, softcap, mask, bias, slopes, sinks, packed } = setup;
  const queryPlaces = placesOf(packed?.queries ?? [0, queries]);
  const keyPlaces = placesOf(packed?.keys ?? [0, keys]);
  const capSlopes = range(queries).map(() => new Array<number>(keys).fill(1));
  const scores = range(queries).map((i) =>
    range(keys).map((j) => {
      const [own, other] = [queryPlaces[i], keyPlaces[j]];
      if (!attends(setup, own, other) || (mask && at(mask, b, h, i, j) === 0)) return -Infinity;
      let score = store(scale * store(dot(q, (query + i) * dim, k, (key + j) * dim, dim, sum)));
      if (softcap !== undefined) {
        const bounded = Math.tanh(score / softcap);
        capSlopes[i][j] = 1 - bounded * bounded;
        score = store(softcap * bounded);
      }
      if (bias) score = store(score + at(bias, b, h, i, j));
      if (slopes) {
        const slope = slopes[slopes.length === 1 ? 0 : packed ? own.sequence : b][h];
        score = store(score - store(slope * Math.abs(distanceOf(setup, own, other))));
      }
      return score;
    }),
  );
  const logSumExp = scores.map((row) => logSumExpOf(sinks ? [...row, sinks[h]] : row, sum));
  const probabilities = scores.map((row, i) =>
    row.map((score) => (score === -Infinity ? 0 : store(sum(Math.exp(sum(score - logSumExp[i])))))),
  );
  return { probabilities, capSlopes, logSumExp };
}

function dot(
  a: readonly number[],
  aStart: number,
  b: readonly number[],
  bStart: number,
  length: number,
  sum: Arithmetic["sum"],
): number {
  let total = 0;
  for (let index = 0; index < length; index++) total = sum(total + sum(a[aStart + index] * b[bStart + index]));
  return total;
}

function logSumExpOf(scores: readonly number[], sum: Arithmetic["sum"]): number {
  const most = scores.reduce((largest, score) => Math.max(largest, score), -Infinity);
  if (most === -Infinity) return -Infinity;
  const total = scores.reduce((partial, score) => sum(partial + sum(Math.exp(sum(score - most)))), 0);
  return sum(most + sum(Math.log(total)));
}

/** The formula, and its gradients by that of softmax: ds = P ∘ (dP − rowsum(P ∘ dP) + dL). */
export function attention(setup: Setup, cotangents: Cotangents, arithmetic: Arithmetic = exact): Attention {
  const { batch, heads, kvHeads, queries, keys, valueDim, q, k, v, bias, sinks } = setup;
  const zeros = (length = 0) => new Float64Array(length);
  const results: Sums = {
    out: zeros(batch * heads * queries * valueDim),
    logSumExp: zeros(batch * heads * queries),
    q: zeros(q.length),
    k: zeros(k.length),
    v: zeros(v.length),
    bias: zeros(bias?.values.length),
    sinks: zeros(sinks?.length),
  };
  for (let b = 0; b < batch; b++)
    for (let h = 0; h < heads; h++) {
      const key = (b * kvHeads + Math.floor(h / (heads / kvHeads))) * keys;
      const head: Head = { b, h, query: (b * heads + h) * queries, key };
      const scores = scoresOf(setup, head, arithmetic);
      for (let i = 0; i < queries; i++) addRow(setup, cotangents, arithmetic, head, scores, i, results);
    }
  const stored = (sums: Float64Array) => Array.from(sums.map(arithmetic.store));
  return {
    out: stored(results.out),
    logSumExp: Array.from(results.logSumExp),
    q: stored(results.q),
    k: stored(results.k),
    v: stored(results.v),
    bias: stored(results.bias),
    sinks: stored(results.sinks),
  };
}

/** Results before they are stored, in typed arrays, which are several times as fast as arrays of numbers. */
type Sums = Readonly<Record<keyof Attention, Float64Array>>;

/** Adds the contributions of one query. */
function addRow(
  { keys, dim, valueDim, q, k, v, scale, keep, bias, sinks }: Setup,
  cotangents: Cotangents,
  { store, sum, magnitudes: byMagnitude = false }: Arithmetic,
  { b, h, query, key }: Head,
  { probabilities, capSlopes, logSumExp }: Scores,
  i: number,
  results: Sums,
): void {
  const { out, q: ofQ, k: ofK, v: ofV } = results;
  const gradOut = cotangents.out;
  const term = byMagnitude ? Math.abs : identity;
  const row = query + i;
  const shares = probabilities[i];
  const attended = range(keys).filter((j) => shares[j] !== 0);
  const factor = (j: number) => (keep ? at(keep, b, h, i, j) : 1);
  results.logSumExp[row] = logSumExp[i];
  const incoming = new Float64Array(shares.length);
  for (const j of attended) {
    const weight = store(shares[j] * factor(j));
    const [start, ofKey] = [row * valueDim, (key + j) * valueDim];
    let total = 0;
    for (let e = 0; weight !== 0 && e < valueDim; e++) {
      const [own, value] = [start + e, ofKey + e];
      out[own] = sum(out[own] + sum(term(weight * v[value])));
      ofV[value] = sum(ofV[value] + sum(term(weight * gradOut[own])));
      total = sum(total + sum(term(gradOut[own] * v[value])));
    }
    incoming[j] = store(store(total) * factor(j));
  }
  const inner = attended.reduce((total, j) => sum(total + sum(shares[j] * incoming[j])), 0);
  const ofSum = cotangents.logSumExp?.[row] ?? 0;
  const less = byMagnitude ? -inner - Math.abs(ofSum) : inner - ofSum;
  if (sinks && logSumExp[i] !== -Infinity)
    results.sinks[h] = sum(results.sinks[h] + sum(term(-Math.exp(sinks[h] - logSumExp[i]) * less)));
  for (const j of attended) {
    const slope = store(shares[j] * sum(incoming[j] - less));
    if (bias) results.bias[placeIn(bias, b, h, i, j)] += slope;
    const through = scale * store(slope * capSlopes[i][j]);
    const [start, ofKey] = [row * dim, (key + j) * dim];
    for (let d = 0; d < dim; d++) {
      const [own, other] = [start + d, ofKey + d];
      ofQ[own] = sum(ofQ[own] + sum(term(through * k[other])));
      ofK[other] = sum(ofK[other] + sum(term(through * q[own])));
    }
  }
}
