import type { Implementation } from "../../backend/backend.ts";
import { cpuLibrary } from "../../backend/cpu/loader.ts";
import { check } from "../../backend/cpu/status.ts";
import { dtypeFacts } from "../../tensor/dtype.ts";
import { broadcastStrides, collapse, elementCount } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type SelectAttributes, type SlopeAttributes, slopeNames } from "./names.ts";

const block = new Float64Array(64);

/** `orchard_cpu_slope`. */
export const slopeCpu: Implementation<SlopeAttributes> = {
  run({ inputs: [x, y], outputs: [output], attributes: { name, parameter } }) {
    writeOperands([slopeNames.indexOf(name), parameter], x!, y!, output!);
    const { native } = cpuLibrary();
    const [a, b, out] = [x!, y!, output!].map(({ storage }) => storage.hostBytes());
    check(native, native.orchard_cpu_slope(block, a!, b!, out!), name);
  },
};

/** `orchard_cpu_select_at`. */
export const selectCpu: Implementation<SelectAttributes> = {
  run({ inputs: [x, indices], outputs: [output], attributes: { axis } }) {
    const { shape } = output!;
    writeOperands([shape[axis] ?? 1, elementCount(shape.slice(axis + 1))], x!, indices!, output!);
    const { native } = cpuLibrary();
    const [a, b, out] = [x!, indices!, output!].map(({ storage }) => storage.hostBytes());
    check(native, native.orchard_cpu_select_at(block, a!, b!, out!), "selectAt");
  },
};

/** Two numbers, dtype, offsets, then the nest of the output's shape with the strides of both operands. The output is row-major. */
function writeOperands(head: readonly [number, number], x: Tensor, y: Tensor, output: Tensor): void {
  const strides = [x, y].map((operand) => broadcastStrides(operand.shape, operand.strides, output.shape));
  const nest = collapse(output.shape, strides);
  const numbers = [...head, dtypeFacts[output.dtype].code, x.offset, y.offset, output.offset, nest.shape.length];
  block.set([...numbers, ...nest.shape, ...nest.strides.flat()]);
}
