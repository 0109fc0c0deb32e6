import type { Implementation } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { broadcastLoop } from "../../backend/metal/loop.ts";
import { elementCount } from "../../tensor/shape.ts";
import { type SelectAttributes, type SlopeAttributes, slopeNames } from "./names.ts";

export const slopeMetal: Implementation<SlopeAttributes> = {
  unsupported: noFloat64,
  run({ inputs: [x, y], outputs: [output], attributes: { name, parameter } }) {
    const { grid, threadgroup, parameters } = broadcastLoop(output!, [x!, y!]);
    launch({
      file: "reduction/slope.metal",
      name: `slope_${metalTypeOf(x!.dtype)}`,
      constants: [slopeNames.indexOf(name)],
      operands: [reads(x!), reads(y!), writes(output!)],
      parameters: appended(parameters, new Float32Array([parameter, 0])),
      grid,
      threadgroup,
    });
  },
};

export const selectMetal: Implementation<SelectAttributes> = {
  unsupported: noFloat64,
  run({ inputs: [x, indices], outputs: [output], attributes: { axis } }) {
    const { shape } = output!;
    const { grid, threadgroup, parameters } = broadcastLoop(output!, [x!, indices!]);
    const sizes = [shape[axis] ?? 1, elementCount(shape.slice(axis + 1))].map(BigInt);
    launch({
      file: "reduction/slope.metal",
      name: `select_at_${metalTypeOf(x!.dtype)}`,
      constants: [0],
      operands: [reads(x!), reads(indices!), writes(output!)],
      parameters: appended(parameters, new BigInt64Array(sizes)),
      grid,
      threadgroup,
    });
  },
};

/** A loop nest with what a kernel needs beside it. */
function appended(parameters: Uint8Array, more: ArrayBufferView): Uint8Array {
  const bytes = new Uint8Array(parameters.length + more.byteLength);
  bytes.set(parameters);
  bytes.set(new Uint8Array(more.buffer), parameters.length);
  return bytes;
}
