import type { Implementation, OperationCall } from "../../backend/backend.ts";
import { cpuLibrary } from "../../backend/cpu/loader.ts";
import { check } from "../../backend/cpu/status.ts";
import { dtypeFacts } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkRangeOnCpu } from "../indexing/range.cpu.ts";
import { boundsError } from "./bounds.ts";
import { type BagAttributes, bagModes } from "./modes.ts";

const block = new Float64Array(32);
const out = new Float64Array(1);

/** `orchard_cpu_embedding_bag`. */
export const bagCpu: Implementation<BagAttributes> = {
  run({ operation, inputs, outputs, attributes }) {
    const [indices, bounds, factors, table] = inputs as [Tensor, Tensor, Tensor, Tensor];
    checkRangeOnCpu({ operation, index: indices, size: attributes.rows });
    if (attributes.length === null) checkBounds(bounds, indices.size);
    const [result, counts, best = result] = outputs as [Tensor, Tensor, Tensor?];
    writeBlock(attributes, inputs, [indices, bounds, factors, table], [table]);
    const { native } = cpuLibrary();
    const [i, o, f, t, a, b, c] = bytesOf([indices, bounds, factors, table, result, counts, best]);
    check(native, native.orchard_cpu_embedding_bag(block, i!, o!, f!, t!, a!, b!, c!), operation);
  },
};

/** `orchard_cpu_embedding_bag_gradient`. */
export const bagGradientCpu: Implementation<BagAttributes> = {
  run({ operation, inputs, outputs: [output], attributes }) {
    const [indices, bounds, factors, gradients, counts, best = counts] = inputs as BagGradientInputs;
    writeBlock(attributes, inputs, [indices, bounds, factors, gradients, counts, best], [gradients]);
    const { native } = cpuLibrary();
    const [i, o, f, g, a, b, c] = bytesOf([indices, bounds, factors, gradients, counts, best, output!]);
    check(native, native.orchard_cpu_embedding_bag_gradient(block, i!, o!, f!, g!, a!, b!, c!), operation);
  },
};

type BagGradientInputs = [Tensor, Tensor, Tensor, Tensor, Tensor, Tensor?];

/** `orchard_cpu_embedding_bag_factors`. */
export const bagFactorsCpu: Implementation<BagAttributes> = {
  run({ operation, inputs, outputs: [output], attributes }) {
    const [indices, bounds, table, gradients] = inputs as [Tensor, Tensor, Tensor, Tensor];
    const operands = [indices, bounds, table, gradients];
    writeBlock({ ...attributes, hasFactors: false }, [indices, bounds, indices, table], operands, [table, gradients]);
    const { native } = cpuLibrary();
    const [i, o, t, g, a] = bytesOf([...operands, output!]);
    check(native, native.orchard_cpu_embedding_bag_factors(block, i!, o!, t!, g!, a!), operation);
  },
};

const bytesOf = (tensors: readonly Tensor[]) => tensors.map(({ storage }) => storage.hostBytes());

/** What every block begins with, then offsets, then the strides of matrices. The fourth input is a matrix of the bags' width. */
function writeBlock(
  { mode, bags, length, rows, padding, hasFactors }: BagAttributes,
  [indices, bounds, , matrix]: OperationCall<BagAttributes>["inputs"],
  offsets: readonly Tensor[],
  matrices: readonly Tensor[],
): void {
  const dtypes = [matrix!, indices!, bounds!].map(({ dtype }) => dtypeFacts[dtype].code);
  block.set([
    ...[...dtypes, bagModes.indexOf(mode), bags, indices!.size, length ?? -1, rows, matrix!.shape[1]!, padding],
    ...[hasFactors ? 1 : 0, ...offsets.map(({ offset }) => offset), ...matrices.flatMap(({ strides }) => strides)],
  ]);
}

/** @throws {ShapeError} for the first bound that begins no bag. */
function checkBounds(bounds: Tensor, total: number): void {
  const { native } = cpuLibrary();
  block.set([dtypeFacts[bounds.dtype].code, bounds.offset, bounds.size, total]);
  check(native, native.orchard_cpu_find_descent(block, bounds.storage.hostBytes(), out), "embeddingBag");
  const position = out[0]!;
  if (position >= 0) throw boundsError(position, bounds.storage.array(bounds.dtype)[bounds.offset + position], total);
}
