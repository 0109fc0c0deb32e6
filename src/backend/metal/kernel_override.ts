/** Uses kernels as bodies of overrides. */
import { aFunction, instanceOf } from "../../core/kinds.ts";
import { operand, parameters } from "../../core/parameters.ts";
import type { TicketRange } from "../backend.ts";
import type { KernelOverride, OverrideCall } from "../overrides.ts";
import type { BindingValue } from "./arguments.ts";
import { MetalKernel, type RunOptions } from "./kernel.ts";
import { denseCopy } from "./kernel_operands.ts";
import { spanOf } from "./launch.ts";

/** The arguments and grid of a kernel for a call. */
export interface KernelArguments {
  /** A value for each argument by name. The call's operands and results are bound directly. */
  readonly bindings: Record<string, BindingValue>;
  /** The grid; see {@link RunOptions}. */
  readonly options: RunOptions;
}

/**
 * Makes a kernel the body of an override on metal. Operands are dense and row-major; others are copied first. The
 * kernel writes the results, which are dense too.
 *
 * @param kernel a kernel of the shared Metal context
 * @param argumentsOf returns the kernel's arguments and grid for a call
 * @example
 * const kernel = metalKernel({ name: "fast_gelu", source });
 * using handle = override("gelu", "metal", kernelOverride(kernel, ({ inputs: [x], outputs: [y] }) => ({
 *   bindings: { x, y, count: x.size },
 *   options: { grid: x.size },
 * })));
 */
export function kernelOverride(
  kernel: MetalKernel,
  argumentsOf: (call: OverrideCall) => KernelArguments,
): KernelOverride;
export function kernelOverride(...values: unknown[]): KernelOverride {
  const { kernel, argumentsOf } = overrideParameters(values);
  return { encode: (call) => encodeOverride(kernel, argumentsOf, call) };
}

const overrideParameters = parameters("kernelOverride", {
  kernel: operand(instanceOf(MetalKernel, "a MetalKernel")),
  argumentsOf: operand(aFunction<(call: OverrideCall) => KernelArguments>()),
});

function encodeOverride(
  kernel: MetalKernel,
  argumentsOf: (call: OverrideCall) => KernelArguments,
  call: OverrideCall,
): TicketRange {
  const copies: TicketRange[] = [];
  const inputs = call.inputs.map((input) => (input.isContiguous ? input : denseCopy(kernel.context, input, copies)));
  const { bindings, options } = argumentsOf({ ...call, inputs });
  try {
    const last = kernel.encode(bindings, options);
    return spanOf([...copies, last]);
  } finally {
    for (const [index, input] of inputs.entries()) if (input !== call.inputs[index]) input.dispose();
  }
}
