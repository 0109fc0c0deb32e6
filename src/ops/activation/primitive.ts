/**
 * Primitives of activations that are not plain elementwise operations: dropout, and the gradient of `swiglu`, which has
 * two results.
 */
import { cpuCall, loop } from "../../backend/cpu/call.ts";
import { array, dtype, real, word } from "../../backend/fields.ts";
import { loopNest } from "../../backend/metal/loop.ts";
import { struct } from "../../backend/metal/struct.ts";
import type { RandomStart } from "../random/primitive.ts";

/**
 * Random words select the elements that become 0, with counters as in `src/random/philox.ts`; the others are multiplied
 * by `scale`.
 */
export interface DropoutAttributes extends RandomStart {
  /** Elements whose word is at most this become 0. */
  readonly lastDropped: number;
  readonly scale: number;
}

const dropoutFields = { key: array(word, 2), counter: array(word, 4), lastDropped: word, scale: real };

export const dropoutParameters = struct("Dropout", { loop: loopNest, ...dropoutFields });
export const dropoutCall = cpuCall("dropout", { dtype, ...dropoutFields, loop: loop(2) }, ["x", "out"]);

/** Both results are contiguous, so the loop nest describes only the first. */
export const swigluGradientCall = cpuCall("swigluGradient", { dtype, loop: loop(4) }, [
  "gradient",
  "gate",
  "up",
  "gateGradient",
  "upGradient",
]);
