/**
 * Primitives of activations that are no plain elementwise operation: dropout, and the gradient of `swiglu`, which has
 * two results.
 */
import { cpuCall, loop } from "../../backend/cpu/call.ts";
import { array, dtype, real, word } from "../../backend/fields.ts";
import { loopNest } from "../../backend/metal/loop.ts";
import { struct } from "../../backend/metal/struct.ts";
import type { RandomStart } from "../random/primitive.ts";

/**
 * Which elements become 0, by their random words, as `src/random/philox.ts` counts them, and what the others are
 * multiplied with.
 */
export interface DropoutAttributes extends RandomStart {
  /** Elements with a word of up to this become 0. */
  readonly lastDropped: number;
  readonly scale: number;
}

const dropoutFields = { key: array(word, 2), counter: array(word, 4), lastDropped: word, scale: real };

export const dropoutParameters = struct("Dropout", "activation/dropout.metal", { loop: loopNest, ...dropoutFields });
export const dropoutCall = cpuCall("dropout", { dtype, ...dropoutFields, loop: loop(2) }, ["x", "out"]);

/** Both results are dense: the loop goes over the first of them. */
export const swigluGradientCall = cpuCall("swigluGradient", { dtype, loop: loop(4) }, [
  ...["gradient", "gate", "up"],
  ...["gateGradient", "upGradient"],
]);
