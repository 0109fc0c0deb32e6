/** The kernel arguments for norms of many gradients, and for their products with a factor. */
import { cpuCall } from "../../backend/cpu/call.ts";
import { array, dtype, whole } from "../../backend/fields.ts";
import { struct } from "../../backend/metal/struct.ts";

/**
 * The maximum number of gradients per launch. Metal binds at most 31 buffers; scaling takes two per gradient, plus the
 * factor and the parameters.
 */
export const MAX_GRADIENTS = 14;

const wholes = array(whole, MAX_GRADIENTS);

/** The number of gradients, the elements of each, and the elements per chunk. */
const fields = { gradients: whole, chunk: whole, sizes: wholes };

/** `firstChunks` is the index of each gradient's first chunk, in the order of the gradients. */
export const gradientParameters = struct("Gradients", { ...fields, firstChunks: wholes });

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
