import type { MetalImplementation } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { sliceValues } from "../../backend/metal/slices.ts";
import { reachOf } from "../../tensor/reach.ts";
import { type Slices, sliceCount, slicesOf } from "../../tensor/slices.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type ScanAttributes, type ScanName, scanParameters, scans } from "./primitive.ts";

const THREADS = 256;
/** Slices of at least this length get a threadgroup each, if the operation supports it. */
const LONG = 64;
/** Elements of a thread for such slices: `HELD` in the kernel. */
const HELD = 4;

export const scanMetal = (name: ScanName): MetalImplementation<ScanAttributes, [Tensor, ...Tensor[]], [Tensor]> => ({
  unsupported: noFloat64,
  run({ inputs: [x, a = x], outputs: [output], attributes: { axis, reverse } }) {
    const operands = [x, a, output];
    const slices = slicesOf(operands, axis, { reverse });
    const count = sliceCount(slices);
    const hasLong = name === "cumsum" || name === "cumprod";
    const isLong = hasLong && slices.length >= LONG && Math.abs(slices.along[0]) === 1;
    return launch({
      file: "scan/scan.metal",
      name: `${isLong ? "scan_long" : "scan"}_${metalTypeOf(x.dtype)}`,
      constants: [scans.ordinal(name), Number(isLong && areQuads(slices, [x, a, output]))],
      operands: [reads(x), reads(a), writes(output)],
      parameters: scanParameters.bytes(sliceValues(slices, operands)),
      threadgroups: isLong ? [count] : [Math.ceil(count / THREADS)],
      threadgroup: THREADS,
    });
  },
});

/** Tests whether a thread reads or writes its elements of each operand in one access. */
const areQuads = ({ length, along, nest }: Slices, operands: readonly Tensor[]): boolean =>
  length % HELD === 0 &&
  operands.every(
    (operand, index) =>
      [reachOf(operand).first, ...nest.strides[index]].every((distance) => distance % HELD === 0) &&
      Math.abs(along[index]) === 1,
  );
