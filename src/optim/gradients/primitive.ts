/** Norms of many gradients, and their products with a factor: what kernels are given. */
import { cpuCall } from "../../backend/cpu/call.ts";
import { array, dtype, whole } from "../../backend/fields.ts";
import { struct } from "../../backend/metal/struct.ts";

/**
 * How many gradients a launch takes at most. Metal binds 31 buffers; a product takes two beside the factor and the
 * numbers.
 */
export const MAX_GRADIENTS = 14;

const wholes = array(whole, MAX_GRADIENTS);

/** How many gradients there are, the elements of each, and how many of them make a chunk. */
const fields = { gradients: whole, chunk: whole, sizes: wholes };

/** `firstChunks`: the chunks of the first gradient come before those of the second, and so on. */
export const gradientParameters = struct("Gradients", "optim/gradients.metal", { ...fields, firstChunks: wholes });

const operandNames = (name: string) => Array.from({ length: MAX_GRADIENTS }, (_, index) => `${name}${index}`);

export const normsCall = cpuCall("gradientNorms", { dtype, ...fields, offsets: wholes, normsOffset: whole }, [
  ...operandNames("gradient"),
  "norms",
]);

export const scaleCall = cpuCall(
  "gradientScale",
  { dtype, ...fields, offsets: wholes, factorOffset: whole, resultOffsets: wholes },
  ["factor", ...operandNames("gradient"), ...operandNames("result")],
);
