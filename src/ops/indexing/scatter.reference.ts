import type { Implementation, OperationCall } from "../../backend/backend.ts";
import { forEachIndex, store, toIntegers, toNumbers } from "../../backend/reference/elements.ts";
import { isFloat } from "../../tensor/dtype.ts";
import { rowMajorStrides } from "../../tensor/shape.ts";
import type { IndexAttributes, ScatterAttributes, Scattering, ScatterOthersAttributes } from "./primitive.ts";
import { checkRange } from "./range.reference.ts";

export const scatterReference: Implementation<ScatterAttributes> = {
  run(call) {
    const { inputs, outputs, attributes } = call;
    const [x, , source] = inputs;
    const { way, includesSelf } = attributes;
    const targets = targetsOf(call);
    if (isFloat(x.dtype)) {
      const state = toNumbers(x);
      putAll(state, toNumbers(source), targets, { put: ofNumbers[way], includesSelf });
      store(outputs[0], state);
    } else {
      const state = toIntegers(x);
      putAll(state, toIntegers(source), targets, { put: ofIntegers[way], includesSelf });
      store(outputs[0], state);
    }
  },
};

export const scatterOthersReference: Implementation<ScatterOthersAttributes> = {
  run(call) {
    const { inputs, outputs, attributes } = call;
    const targets = targetsOf(call);
    const before = toNumbers(inputs[0]);
    if (!attributes.includesSelf) before.fill(1);
    const after = new Float64Array(before.length).fill(1);
    const values = toNumbers(inputs[2]);
    const products = new Float64Array(values.length);
    for (const [element, target] of targets.entries()) {
      products[element] = before[target];
      before[target] *= values[element];
    }
    for (const [element, target] of [...targets.entries()].reverse()) {
      products[element] *= after[target];
      after[target] *= values[element];
    }
    store(outputs[0], products);
  },
};

/** For each element of the source in row-major order, the position of the element of x that its index selects. */
function targetsOf({ inputs: [x, index, source], attributes }: OperationCall<IndexAttributes>): readonly number[] {
  const { operation, dim, axes, isSigned, wraps = false } = attributes;
  const size = x.shape[dim];
  checkRange({ operation, index, size, axes, isSigned, wraps });
  const indices = toIntegers(index).map((place) => (wraps && place < 0n ? place + BigInt(size) : place));
  const strides = rowMajorStrides(x.shape);
  const targets = new Array<number>(indices.length);
  forEachIndex(source.shape, [{ strides: strides.with(dim, 0), offset: 0 }], ([offset], element) => {
    targets[element] = offset + Number(indices[element]) * strides[dim];
  });
  return targets;
}

type Put<Value> = (current: Value, next: Value) => Value;

/** `amax` and `amin` propagate NaN. */
const ofNumbers: Readonly<Record<Scattering, Put<number>>> = {
  sum: (current, next) => current + next,
  prod: (current, next) => current * next,
  amax: (current, next) => (next > current || Number.isNaN(next) ? next : current),
  amin: (current, next) => (next < current || Number.isNaN(next) ? next : current),
  last: (_, next) => next,
};
const ofIntegers: Readonly<Record<Scattering, Put<bigint>>> = {
  sum: (current, next) => current + next,
  prod: (current, next) => BigInt.asIntN(64, current * next),
  amax: (current, next) => (next > current ? next : current),
  amin: (current, next) => (next < current ? next : current),
  last: (_, next) => next,
};

interface How<Value> {
  readonly put: Put<Value>;
  readonly includesSelf: boolean;
}

function putAll<Value>(
  state: { [at: number]: Value },
  values: ArrayLike<Value>,
  targets: readonly number[],
  { put, includesSelf }: How<Value>,
): void {
  const isNamed = new Set<number>();
  for (const [element, target] of targets.entries()) {
    const isFirst = !includesSelf && !isNamed.has(target);
    state[target] = isFirst ? values[element]! : put(state[target]!, values[element]!);
    isNamed.add(target);
  }
}
