import type { MetalImplementation, OperationCall, TicketRange } from "../../backend/backend.ts";
import { launch, metalTypeOf, reads, startOf, writes } from "../../backend/metal/launch.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { formatConstants, readBytes, weightBuffers, weightsStruct } from "../metal.ts";
import { quantProduct } from "../primitive.ts";
import { type ProductAttributes, stridesOf } from "./attributes.ts";
import { packedBytes, runParts, tileFor, transposedParts, vector, vectorRows } from "./tiles.ts";

/** One kernel: for few rows of x, or in tiles. */
export const quantizedMatmulMetal: MetalImplementation<ProductAttributes> = {
  run(call) {
    const { count, isTransposed } = call.attributes;
    return !isTransposed && count <= vector.mostCount ? launchVector(call) : launchTiled(call);
  },
};

type Call = OperationCall<ProductAttributes>;

function launchVector({ inputs: [x, ...weights], outputs: [output], attributes }: Call): TicketRange {
  const { rows, count } = attributes;
  const ownRows = vectorRows(rows);
  return launch({
    file: "quant/vector.metal",
    name: `quant_vector_${metalTypeOf(x!.dtype)}`,
    constants: constantsOf(attributes, weights, vector.parts, count),
    operands: [...weightBuffers(weights), reads(x!), writes(output!)],
    parameters: parametersOf(attributes, x!, ownRows),
    threadgroups: Math.ceil(rows / (vector.simdgroups * ownRows)),
    threadgroup: vector.simdgroups * 32,
    threadgroupMemory: [packedBytes(attributes, 2 * vector.simdgroups, vector.parts)],
  });
}

function launchTiled({ inputs: [x, ...weights], outputs: [output], attributes }: Call): TicketRange {
  const { rows, columns, count, isTransposed } = attributes;
  const tile = tileFor(attributes);
  const parts = isTransposed ? transposedParts : runParts(attributes, tile);
  return launch({
    file: "quant/tiled.metal",
    name: `quant_tiled_${metalTypeOf(x!.dtype)}_${tile.name}`,
    constants: constantsOf(attributes, weights, parts, parts),
    operands: [...weightBuffers(weights), reads(x!), writes(output!)],
    parameters: parametersOf(attributes, x!, 0),
    threadgroups: [Math.ceil((isTransposed ? columns : rows) / tile.columns), Math.ceil(count / tile.rows)],
    threadgroup: tile.threads,
    threadgroupMemory: [packedBytes(attributes, isTransposed ? tile.depth : tile.columns, parts)],
  });
}

/** Constants 0 to 7; rows come to threadgroup memory by so many parts, and the last one is the kernel's own. */
const constantsOf = (attributes: ProductAttributes, weights: readonly Tensor[], parts: number, own: number) => [
  ...formatConstants(attributes, weights),
  ...[readBytes(attributes, weights[0]!, parts), own],
];

function parametersOf(attributes: ProductAttributes, x: Tensor, ownRows: number): Uint8Array {
  return quantProduct.bytes({
    weights: weightsStruct(attributes),
    ...{ count: attributes.count, xStrides: stridesOf(x), xStart: startOf(x), ownRows },
  });
}
