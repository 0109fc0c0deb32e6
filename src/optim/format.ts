/** Prints optimizers. */
import { printedBytes, printedCount, printedOptions } from "../core/printing.ts";
import { byteLengthOf } from "../tensor/tensor.ts";
import type { LearningRate, ParameterGroup } from "./groups.ts";
import type { Slot } from "./slot.ts";

interface Printable {
  readonly name: string;
  readonly groups: readonly ParameterGroup<LearningRate>[];
  readonly slots: readonly Slot<LearningRate>[];
}

/**
 * @internal `Adam: 4 parameters (58 elements), 10 steps, 472 B of state`, and a line of options for each group. The
 * number of steps is the maximum over parameters.
 */
export function formatOptimizer({ name, groups, slots }: Printable): string {
  const elements = slots.reduce((sum, { parameter }) => sum + parameter.size, 0);
  const steps = slots.reduce((most, slot) => Math.max(most, slot.steps), 0);
  const state = slots.flatMap((slot) => Object.values(slot.state));
  const bytes = state.reduce((sum, { shape, dtype }) => sum + byteLengthOf(shape, dtype), 0);
  const what = `${printedCount(slots.length, "parameter")} (${printedCount(elements, "element")})`;
  const head = `${name}: ${what}, ${printedCount(steps, "step")}, ${printedBytes(bytes)} of state`;
  return [head, ...groups.map((group, index) => `  ${groupName(groups, index)}${optionsOf(group)}`)].join("\n");
}

const groupName = (groups: readonly ParameterGroup<LearningRate>[], index: number): string =>
  groups.length === 1 ? "" : `group ${index} (${printedCount(groups[index].parameters.length, "parameter")}): `;

/** Omits options that are false, and shows the initial learning rate only if a schedule has changed it. */
function optionsOf({ parameters: _, lr, initialLr, ...options }: ParameterGroup<LearningRate>): string {
  const on = Object.entries(options).filter(([, value]) => value !== false);
  return printedOptions({ lr, ...(initialLr === lr ? {} : { initialLr }), ...Object.fromEntries(on) });
}
