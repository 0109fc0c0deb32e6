import type { Implementation } from "../../backend/backend.ts";
import { cpuLibrary } from "../../backend/cpu/loader.ts";
import { check } from "../../backend/cpu/status.ts";
import { dtypeFacts } from "../../tensor/dtype.ts";
import { blockOf } from "./block.cpu.ts";
import type { TriangleAttributes } from "./triangle_attributes.ts";

export const triangleCpu: Implementation<TriangleAttributes> = {
  run({ operation, inputs: [x], outputs: [output], attributes: { lower, diagonal } }) {
    const { native } = cpuLibrary();
    const { shape, strides } = x!;
    const block = blockOf(
      [
        ...[dtypeFacts[x!.dtype].code, x!.offset, output!.offset],
        ...[lower ? 1 : 0, diagonal, shape.at(-1)!, strides.at(-1)!],
      ],
      { shape: shape.slice(0, -1), strides: [strides.slice(0, -1)] },
    );
    check(native, native.orchard_cpu_triangle(block, x!.storage.hostBytes(), output!.storage.hostBytes()), operation);
  },
};
