/** A Gauss-Legendre rule, for functions that are computed as integrals of smooth functions. */

/** A point of the rule on [0, 1]. */
export interface Node {
  readonly at: number;
  readonly weight: number;
}

const POINTS = 32;

/** Nodes and weights of the Gauss-Legendre rule on [0, 1], by Newton's method on the Legendre polynomial. */
function computed(): readonly Node[] {
  return Array.from({ length: POINTS }, (_, index) => {
    let x = Math.cos((Math.PI * (index + 0.75)) / (POINTS + 0.5));
    let slope = 1;
    for (let step = 0; step < 100; step++) {
      let [before, value] = [1, x];
      for (let k = 2; k <= POINTS; k++) [before, value] = [value, ((2 * k - 1) * x * value - (k - 1) * before) / k];
      slope = (POINTS * (x * value - before)) / (x * x - 1);
      x -= value / slope;
    }
    return { at: (1 + x) / 2, weight: 1 / ((1 - x * x) * slope * slope) };
  });
}

let rule: readonly Node[] | undefined;

/** Returns the rule on [0, 1]. It is computed on the first call. */
export function legendreRule(): readonly Node[] {
  rule ??= computed();
  return rule;
}
