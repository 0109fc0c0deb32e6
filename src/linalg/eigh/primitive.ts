import { cpuCall } from "../../backend/cpu/call.ts";
import { dtype, flag, whole, word } from "../../backend/fields.ts";
import { struct } from "../../backend/metal/struct.ts";

/**
 * The eigenvalues of symmetric matrices in ascending order, and their eigenvectors as the columns of an orthogonal
 * matrix, of each of which the largest element by absolute value, the first of equals, is positive.
 *
 * Outputs: eigenvalues […, n]; info […]; where vectors are computed, eigenvectors […, n, n]. Info is 0; or the first
 * row of the symmetric matrix, counted from 1, with an element that is not finite; or n + 1 where the iteration did not
 * converge. Then the results are NaN.
 */
export interface EighAttributes {
  /** Whether the upper triangle is read, else the lower one. */
  readonly upper: boolean;
  /** Whether eigenvectors are computed. */
  readonly vectors: boolean;
}

const eighFields = { batch: whole, size: whole, upper: flag, vectors: flag };
export const eighCall = cpuCall("eigh", { dtype, ...eighFields }, ["a", "eigenvalues", "info", "eigenvectors"]);
export const eighParameters = struct("Eigh", "linalg/eigh.metal", { batch: whole, size: whole, upper: flag });
export const eighBlockedParameters = struct("EighBlocked", "linalg/eigh_blocked.metal", {
  batch: whole,
  size: whole,
  blocks: word,
  rounds: word,
  round: word,
  upper: flag,
  vectors: flag,
});
