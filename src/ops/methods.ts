/** Operations as methods: `a.add(b)` is `add(a, b)`. One table, from which the prototype is filled and the types are made. */
import type { DType } from "../tensor/dtype.ts";
import { Tensor } from "../tensor/tensor.ts";
import type { Operand, ResultOf } from "./elementwise/binary.ts";
import type { FloatOf } from "./elementwise/unary.ts";
import * as operations from "./index.ts";

type Operations = typeof operations;

/** By what becomes of the tensor's dtype. */
const table = {
  same: ["neg", "clone", "contiguous", "expand", "reshape"],
  float: ["exp"],
  promoted: ["add", "sub", "mul", "div"],
} as const satisfies Readonly<Record<string, readonly (keyof Operations)[]>>;
type NameOf<Kind extends keyof typeof table> = (typeof table)[Kind][number];

type Rest<F> = F extends (x: never, ...rest: infer R) => unknown ? R : never;
type RestAfterTwo<F> = F extends (a: never, b: never, ...rest: infer R) => unknown ? R : never;

type Giving<Names extends keyof Operations, Result> = {
  [Name in Names]: (...rest: Rest<Operations[Name]>) => Result;
};
type Promoting<Names extends keyof Operations, D extends DType> = {
  [Name in Names]: <B extends Operand>(
    other: B,
    ...rest: RestAfterTwo<Operations[Name]>
  ) => Tensor<ResultOf<Tensor<D>, B>>;
};

declare module "../tensor/tensor.ts" {
  interface Tensor<D extends DType>
    extends Giving<NameOf<"same">, Tensor<D>>,
      Giving<NameOf<"float">, Tensor<FloatOf<D>>>,
      Promoting<NameOf<"promoted">, D> {}
}

const functions: Operations = operations;
for (const name of Object.values(table).flat()) {
  const operation = functions[name] as (...values: readonly unknown[]) => unknown;
  Object.defineProperty(Tensor.prototype, name, {
    value: function (this: Tensor, ...rest: readonly unknown[]): unknown {
      return operation(this, ...rest);
    },
    writable: true,
    configurable: true,
  });
}
