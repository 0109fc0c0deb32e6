import type { Implementation } from "../../backend/backend.ts";
import { store, toIntegers, toNumbers } from "../../backend/reference/elements.ts";
import { isFloat } from "../../tensor/dtype.ts";
import { elementCount, type Shape } from "../../tensor/shape.ts";
import type { ScanAttributes, ScanName } from "./names.ts";

type Line<Value> = readonly Value[];

const floats: Readonly<Record<ScanName, (x: Line<number>, a: Line<number>) => number[]>> = {
  cumsum: (x) => carried(x, 0, (sum, value) => sum + value),
  cumprod: (x) => carried(x, 1, (product, value) => product * value),
  exclusiveCumprod: (x) => [1, ...carried(x, 1, (product, value) => product * value)].slice(0, x.length),
  shift: (x) => [0, ...x].slice(0, x.length),
  recurrence: (x, a) => carried(x, 0, (h, value, k) => (k === 0 ? value : a[k]! * h + value)),
  shiftedRecurrence: (x, a) => carried(x, 0, (h, value, k) => (k === 0 ? value : a[k - 1]! * h + value)),
};

const integers: Readonly<Partial<Record<ScanName, (x: Line<bigint>) => bigint[]>>> = {
  cumsum: (x) => carried(x, 0n, (sum, value) => BigInt.asIntN(64, sum + value)),
  cumprod: (x) => carried(x, 1n, (product, value) => BigInt.asIntN(64, product * value)),
};

function carried<Value>(x: Line<Value>, first: Value, step: (h: Value, value: Value, k: number) => Value): Value[] {
  let h = first;
  return x.map((value, k) => {
    h = step(h, value, k);
    return h;
  });
}

export const scanReference = (name: ScanName): Implementation<ScanAttributes> => ({
  run({ inputs: [x, a], outputs: [output], attributes }) {
    const { shape } = x!;
    if (isFloat(x!.dtype)) {
      const coefficients = a ? toNumbers(a) : new Float64Array(0);
      store(output!, overLines(toNumbers(x!), coefficients, shape, attributes, floats[name]));
    } else {
      const scan = integers[name];
      if (scan) store(output!, overLines(toIntegers(x!), [], shape, attributes, scan));
    }
  },
});

/** Applies `scan` to each line along the axis. */
function overLines<Value>(
  x: ArrayLike<Value>,
  a: ArrayLike<Value>,
  shape: Shape,
  { axis, reverse }: ScanAttributes,
  scan: (x: Line<Value>, a: Line<Value>) => Value[],
): Value[] {
  const length = shape[axis] ?? 1;
  const step = elementCount(shape.slice(axis + 1));
  const result = new Array<Value>(x.length);
  for (let start = 0; start < x.length; start++) {
    if (Math.floor(start / step) % length !== 0) continue;
    const places = Array.from({ length }, (_, k) => start + (reverse ? length - 1 - k : k) * step);
    const line = scan(
      places.map((place) => x[place]!),
      places.map((place) => a[place]!),
    );
    for (const [k, place] of places.entries()) result[place] = line[k]!;
  }
  return result;
}
