/**
 * Computes an exponential moving average over about a hundredth of the values, with bias correction as in Adam. Missing
 * and non-finite values are skipped and have no average.
 */
export function smooth(values: readonly (number | null)[]): (number | null)[] {
  const count = values.filter(isNumber).length;
  const decay = 1 - 1 / Math.max(1, count / 100);
  let [mean, weight] = [0, 0];
  return values.map((value) => {
    if (!isNumber(value)) return null;
    [mean, weight] = [decay * mean + (1 - decay) * value, decay * weight + (1 - decay)];
    return mean / weight;
  });
}

const isNumber = (value: number | null): value is number => value !== null && Number.isFinite(value);
