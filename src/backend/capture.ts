/**
 * Captures the calls of primitives that a function makes, for export to ONNX. It works on every backend. `compile`
 * records one level below, through `observe/capture.ts`: calls of the cpu dylib and dispatches of Metal kernels, with
 * the memory of their operands.
 */
import type { Operands } from "../core/operands.ts";
import type { Tensor } from "../tensor/tensor.ts";

/** A primitive that ran. For an update in place, both the first inputs and the outputs are the targets. */
export interface CapturedCall {
  readonly primitive: string;
  readonly inputs: Operands<Tensor>;
  readonly outputs: Operands<Tensor>;
  readonly attributes: unknown;
}

type Receiver = (call: CapturedCall) => void;
let receiver: Receiver | undefined;

/** @internal Returns the current receiver of calls; undefined if they are not captured. */
export const capturing = (): Receiver | undefined => receiver;

/** Runs `body`, which must not be asynchronous, and passes the calls that it makes to a receiver. */
export function captured<Result>(receive: Receiver | undefined, body: () => Result): Result {
  const before = receiver;
  receiver = receive;
  try {
    return body();
  } finally {
    receiver = before;
  }
}

/** @internal */
export const callOf = (
  primitive: string,
  inputs: readonly Tensor[],
  outputs: readonly Tensor[],
  attributes: unknown,
): CapturedCall => ({
  primitive,
  attributes,
  inputs: inputs as Operands<Tensor>,
  outputs: outputs as Operands<Tensor>,
});

/** @internal Reports a tensor with elements from JavaScript. */
export const captureConstant = (tensor: Tensor): void => receiver?.(callOf("constant", [], [tensor], undefined));
