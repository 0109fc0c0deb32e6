import type { Implementation } from "../../backend/backend.ts";
import { store, toIntegers, toNumbers } from "../../backend/reference/elements.ts";
import { mapSlices } from "../../backend/reference/slices.ts";
import { isFloat } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { ScanAttributes, ScanName } from "./primitive.ts";

type Slice<Value> = readonly Value[];

const floats: Readonly<Record<ScanName, (x: Slice<number>, a: Slice<number>) => number[]>> = {
  cumsum: (x) => carried(x, 0, (sum, value) => sum + value),
  cumprod: (x) => carried(x, 1, (product, value) => product * value),
  exclusiveCumprod: (x) => [1, ...carried(x, 1, (product, value) => product * value)].slice(0, x.length),
  shift: (x) => [0, ...x].slice(0, x.length),
  recurrence: (x, a) => carried(x, 0, (h, value, k) => (k === 0 ? value : a[k] * h + value)),
  shiftedRecurrence: (x, a) => carried(x, 0, (h, value, k) => (k === 0 ? value : a[k - 1] * h + value)),
};

const integers: Readonly<Partial<Record<ScanName, (x: Slice<bigint>) => bigint[]>>> = {
  cumsum: (x) => carried(x, 0n, (sum, value) => BigInt.asIntN(64, sum + value)),
  cumprod: (x) => carried(x, 1n, (product, value) => BigInt.asIntN(64, product * value)),
};

function carried<Value>(x: Slice<Value>, first: Value, step: (h: Value, value: Value, k: number) => Value): Value[] {
  let h = first;
  return x.map((value, k) => {
    h = step(h, value, k);
    return h;
  });
}

export const scanReference = (name: ScanName): Implementation<ScanAttributes, [Tensor, Tensor], [Tensor]> => ({
  run({ inputs: [x, a], outputs: [output], attributes: { axis, reverse } }) {
    const { shape } = x;
    const integer = integers[name];
    if (isFloat(x.dtype)) {
      const scan = inDirection(reverse, floats[name]);
      const operands = [x, a ?? x].map((operand) => toNumbers(operand));
      store(
        output,
        mapSlices(operands, shape, axis, ([values, coefficients]) => scan(values, coefficients)),
      );
    } else if (integer) {
      const scan = inDirection(reverse, integer);
      store(
        output,
        mapSlices([toIntegers(x)], shape, axis, ([values]) => scan(values, [])),
      );
    }
  },
});

/** Returns the scan, from the last element to the first if `reverse`. */
const inDirection =
  <Value>(reverse: boolean, scan: (x: Slice<Value>, a: Slice<Value>) => Value[]): typeof scan =>
  (x, a) =>
    reverse ? scan(x.toReversed(), a.toReversed()).reverse() : scan(x, a);
