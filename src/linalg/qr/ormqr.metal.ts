import type { MetalImplementation } from "../../backend/backend.ts";
import { launchBatch, noFloat64, reads, spanOf, writes } from "../../backend/metal/launch.ts";
import { lastElement } from "../../core/collections.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { matricesOf } from "../matrices.ts";
import { SERIAL } from "../metal.ts";
import { fasterOnCpu } from "../route.ts";
import { applyBlocks, copyBlocks, formTriangles, trianglesFor } from "./blocks.metal.ts";
import { bytesFor, strideFor, teamFor, threadsOf, tileFor } from "./layout.metal.ts";
import { type OrmqrAttributes, ormqrParameters } from "./primitive.ts";

/**
 * Minimum number of columns per threadgroup. With fewer columns, applying reflections one by one costs more than
 * applying blocks.
 */
const LEAST_TILE = 32;

export const ormqrMetal: MetalImplementation<OrmqrAttributes, [Tensor, Tensor, Tensor], [Tensor]> = {
  unsupported(call) {
    const [, tau, c] = call.inputs;
    const { batch, rows, columns } = matricesOf(c);
    const work = batch * rows * columns * lastElement(tau.shape);
    return noFloat64(call) ?? fasterOnCpu("qr", tileFor(rows) < LEAST_TILE, work);
  },
  run({ inputs: [a, tau, c], outputs: [product], attributes }) {
    const sizes = matricesOf(a);
    const { batch, rows } = sizes;
    const width = lastElement(c.shape);
    const reflectors = lastElement(tau.shape);
    if (tileFor(rows) < LEAST_TILE) {
      using triangles = trianglesFor(batch, reflectors);
      const blocks = { a: a, tau: tau, triangles };
      const formed = reflectors > 0 ? [formTriangles(blocks)] : [];
      return spanOf([copyBlocks(c, product), ...formed, ...applyBlocks(blocks, product, attributes.transpose)]);
    }
    const tile = Math.min(width, tileFor(rows));
    const team = teamFor(rows);
    const work = SERIAL * batch * rows * width * Math.max(1, reflectors);
    return launchBatch(batch, work, (count) => ({
      file: "linalg/ormqr.metal",
      name: "ormqr",
      operands: [reads(a), reads(tau), reads(c), writes(product)],
      parameters: ormqrParameters.bytes({ ...sizes, batch: count, reflectors, width, ...attributes, tile, team }),
      threadgroups: [Math.ceil(width / tile), count],
      threadgroup: threadsOf(tile, team),
      threadgroupMemory: [bytesFor(rows * (strideFor(tile) + 1))],
    }));
  },
};
