import type { MetalImplementation, OperationCall, TicketRange } from "../../backend/backend.ts";
import { countCodepath } from "../../backend/dispatch.ts";
import { launch, metalTypeOf } from "../../backend/metal/launch.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { layoutOfRows, type ProductAttributes, productInputs } from "./attributes.ts";
import { launchBytes, type RoundedRows, whyExact } from "./bytes.metal.ts";
import { constantsOf, kindOf, operandsOf, type ProductLaunch, parametersOf, workOf } from "./product_launch.ts";
import { packedBytes, runParts, tileFor, transposedParts, transposedTile, vector, vectorRows } from "./tiles.ts";

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

/**
 * Uses the vector kernel for few rows of x, and tiles otherwise: of bytes if x may be rounded and that moves less.
 *
 * @param rounded the rounded x, if another product has it
 */
export function launchProduct(product: ProductLaunch, rounded?: RoundedRows): TicketRange {
  const { attributes, x } = product;
  if (attributes.isFast) {
    const why = whyExact(attributes, x.dtype);
    countCodepath("quantizedMatmulFast", "metal", why ? `exact: ${why}` : "bytes: they move less memory");
    if (!why) return launchBytes(product, rounded);
  }
  return attributes.count <= vector.mostCount ? launchVector(product) : launchTiled(product);
}

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

/** Whether columns are adjacent and rows start at multiples of four elements. */
function canReadByFours(x: Tensor): boolean {
  const [batch, row, column] = layoutOfRows(x)!.xStrides;
  return column === 1 && [x.offset, batch, row].every((elements) => elements % 4 === 0);
}
