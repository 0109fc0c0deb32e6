import type { MetalImplementation, OperationCall, TicketRange } from "../../backend/backend.ts";
import { launch, metalTypeOf, type Operand, reads, startOf, writes } from "../../backend/metal/launch.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { formatConstants, readBytes, weightBuffers, weightsStruct } from "../metal.ts";
import { quantProduct } from "../primitive.ts";
import { layoutOfRows, type ProductAttributes, productInputs, type RowsAttributes } from "./attributes.ts";
import { packedBytes, runParts, tileFor, transposedParts, transposedTile, vector, vectorRows } from "./tiles.ts";

/** The arguments of a product kernel: one matrix, or the matrices of gate and up. */
export interface ProductLaunch {
  readonly attributes: RowsAttributes;
  readonly x: Tensor;
  readonly matrices: readonly (readonly Tensor[])[];
  /** The bias of each matrix, in the same order. */
  readonly biases: readonly (Tensor | undefined)[];
  /** The ordinal of a gate's activation; 0 if there is none. */
  readonly activation: number;
  readonly output: Tensor;
}

/** Computes the product in one kernel. */
export const quantizedMatmulMetal: MetalImplementation<ProductAttributes> = {
  run(call) {
    const { attributes } = call;
    const product = launchOf(call);
    if (attributes.isTransposed) return launchTransposed(product);
    return launchProduct(product);
  },
};

function launchOf({ inputs, outputs: [output], attributes }: OperationCall<ProductAttributes>): ProductLaunch {
  const { x, weights, bias } = productInputs(inputs, attributes);
  return { attributes, x, matrices: [weights], biases: [bias], activation: 0, output: output };
}

/** Uses the vector kernel for few rows of x, and tiles otherwise. */
export const launchProduct = (product: ProductLaunch): TicketRange =>
  product.attributes.count <= vector.mostCount ? launchVector(product) : launchTiled(product);

const kindOf = ({ matrices }: ProductLaunch): string => (matrices.length === 2 ? "quant_gated" : "quant");

function launchVector(product: ProductLaunch): TicketRange {
  const { attributes, x, matrices } = product;
  const { rows, count } = attributes;
  const ownRows = vectorRows(rows * matrices.length);
  return launch({
    file: "quant/vector.metal",
    name: `${kindOf(product)}_vector_${metalTypeOf(x.dtype)}`,
    constants: constantsOf(product, vector.parts, count),
    operands: operandsOf(product),
    parameters: parametersOf(product, ownRows),
    threadgroups: Math.ceil((rows * matrices.length) / (vector.simdgroups * ownRows)),
    threadgroup: vector.simdgroups * 32,
    threadgroupMemory: [packedBytes(attributes, 2 * vector.simdgroups, vector.parts)],
    work: workOf(product),
  });
}

function launchTiled(product: ProductLaunch): TicketRange {
  const { attributes, x, matrices } = product;
  const { rows, count } = attributes;
  const tile = tileFor(rows * matrices.length, count);
  const parts = runParts(attributes, tile);
  return launch({
    file: "quant/tiled.metal",
    name: `${kindOf(product)}_tiled_${metalTypeOf(x.dtype)}_${tile.name}`,
    constants: [...constantsOf(product, parts, parts), Number(canReadByFours(x))],
    operands: operandsOf(product),
    parameters: parametersOf(product, 0),
    threadgroups: [Math.ceil((rows * matrices.length) / tile.columns), Math.ceil(count / tile.rows)],
    threadgroup: tile.threads,
    threadgroupMemory: [packedBytes(attributes, tile.columns, parts)],
    work: workOf(product),
  });
}

function launchTransposed(product: ProductLaunch): TicketRange {
  const { attributes, x } = product;
  const { columns, count } = attributes;
  const tile = transposedTile;
  return launch({
    file: "quant/tiled.metal",
    name: `quant_tiled_${metalTypeOf(x.dtype)}_${tile.name}`,
    constants: [...constantsOf(product, transposedParts, transposedParts), Number(canReadByFours(x))],
    operands: operandsOf(product),
    parameters: parametersOf(product, 0),
    threadgroups: [Math.ceil(columns / tile.columns), Math.ceil(count / tile.rows)],
    threadgroup: tile.threads,
    threadgroupMemory: [packedBytes(attributes, tile.depth, transposedParts)],
    work: workOf(product),
  });
}

const workOf = ({ attributes: { rows, columns, count }, matrices }: ProductLaunch): number =>
  2 * rows * columns * count * matrices.length;

/** x stands in for an absent bias, which the kernel does not read. */
const operandsOf = ({ x, matrices, biases, output }: ProductLaunch): Operand[] => [
  ...matrices.flatMap(weightBuffers),
  ...[x, ...biases.map((bias) => bias ?? x)].map(reads),
  writes(output),
];

/**
 * Function constants 0 to 9. Rows are copied to threadgroup memory `parts` parts at a time; the meaning of constant 7
 * differs between kernels.
 */
const constantsOf = ({ attributes, matrices, biases, activation }: ProductLaunch, parts: number, seventh: number) => [
  ...formatConstants(attributes, matrices[0]),
  Math.min(...matrices.map(([packed]) => readBytes(attributes, packed, parts))),
  seventh,
  biases.reduce((all, bias, at) => all + (bias ? 1 << at : 0), 0),
  activation,
];

/** Whether columns are adjacent and rows start at multiples of four elements. */
function canReadByFours(x: Tensor): boolean {
  const [batch, row, column] = layoutOfRows(x)!.xStrides;
  return column === 1 && [x.offset, batch, row].every((elements) => elements % 4 === 0);
}

function parametersOf({ attributes, x }: ProductLaunch, ownRows: number): Uint8Array {
  return quantProduct.bytes({
    weights: weightsStruct(attributes),
    count: attributes.count,
    ...layoutOfRows(x)!,
    xStart: startOf(x),
    ownRows,
  });
}
