import type { MetalImplementation, OperationCall, TicketRange } from "../../backend/backend.ts";
import { launch, metalTypeOf, type Operand, reads, startOf, writes } from "../../backend/metal/launch.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { formatConstants, readBytes, weightBuffers, weightsStruct } from "../metal.ts";
import { quantProduct } from "../primitive.ts";
import { type ProductAttributes, productInputs, stridesOf } from "./attributes.ts";
import { packedBytes, runParts, tileFor, transposedParts, vector, vectorRows } from "./tiles.ts";

/** One kernel: for few rows of x, or in tiles. */
export const quantizedMatmulMetal: MetalImplementation<ProductAttributes> = {
  run(call) {
    const { count, isTransposed } = call.attributes;
    return !isTransposed && count <= vector.mostCount ? launchVector(call) : launchTiled(call);
  },
};

type Call = OperationCall<ProductAttributes>;

function launchVector({ inputs, outputs: [output], attributes }: Call): TicketRange {
  const { rows, count } = attributes;
  const own = productInputs(inputs, attributes);
  const ownRows = vectorRows(rows);
  return launch({
    file: "quant/vector.metal",
    name: `quant_vector_${metalTypeOf(own.x.dtype)}`,
    constants: constantsOf(attributes, own.weights, vector.parts, count),
    operands: operandsOf(own, output!),
    parameters: parametersOf(attributes, own, ownRows),
    threadgroups: Math.ceil(rows / (vector.simdgroups * ownRows)),
    threadgroup: vector.simdgroups * 32,
    threadgroupMemory: [packedBytes(attributes, 2 * vector.simdgroups, vector.parts)],
  });
}

function launchTiled({ inputs, outputs: [output], attributes }: Call): TicketRange {
  const { rows, columns, count, isTransposed } = attributes;
  const own = productInputs(inputs, attributes);
  const tile = tileFor(attributes);
  const parts = isTransposed ? transposedParts : runParts(attributes, tile);
  return launch({
    file: "quant/tiled.metal",
    name: `quant_tiled_${metalTypeOf(own.x.dtype)}_${tile.name}`,
    constants: constantsOf(attributes, own.weights, parts, parts),
    operands: operandsOf(own, output!),
    parameters: parametersOf(attributes, own, 0),
    threadgroups: [Math.ceil((isTransposed ? columns : rows) / tile.columns), Math.ceil(count / tile.rows)],
    threadgroup: tile.threads,
    threadgroupMemory: [packedBytes(attributes, isTransposed ? tile.depth : tile.columns, parts)],
  });
}

type Inputs = ReturnType<typeof productInputs>;

/** Where there is no bias, it is not read. */
const operandsOf = ({ x, weights, bias }: Inputs, output: Tensor): Operand[] => [
  ...weightBuffers(weights),
  ...[reads(x), reads(bias ?? x), writes(output)],
];

/** Constants 0 to 8; rows come to threadgroup memory by so many parts, and constant 7 is the kernel's own. */
const constantsOf = (attributes: ProductAttributes, weights: readonly Tensor[], parts: number, own: number) => [
  ...formatConstants(attributes, weights),
  ...[readBytes(attributes, weights[0]!, parts), own, attributes.hasBias ? 1 : 0],
];

function parametersOf(attributes: ProductAttributes, { x }: Inputs, ownRows: number): Uint8Array {
  return quantProduct.bytes({
    weights: weightsStruct(attributes),
    ...{ count: attributes.count, xStrides: stridesOf(x), xStart: startOf(x), ownRows },
  });
}
