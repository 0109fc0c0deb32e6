/** The node tests of the standard that do not pass, with the reasons. docs/onnx.md describes the same differences. */

/** How a case fails. */
export interface Difference {
  readonly reason: string;
  readonly applies: (name: string) => boolean;
  /** The message of the error; undefined if the case computes different results. */
  readonly error?: RegExp;
}

const named =
  (...patterns: readonly RegExp[]) =>
  (name: string): boolean =>
    patterns.some((pattern) => pattern.test(name));

/** A case belongs to the first difference that applies. */
export const differences: readonly Difference[] = [
  {
    reason: "operators that are not supported",
    applies: named(/^test_image_decoder/),
    error: /operators? .* not supported/,
  },
  {
    reason: "corners align by the whole length of the result, as in the standard's text, PyTorch and onnxruntime",
    applies: named(/^test_resize_downsample_scales_(cubic|linear)_align_corners$/),
  },
  {
    reason: "random numbers of another generator",
    applies: named(/^test_bernoulli/, /^test_training_dropout_(default|mask)/, /^test_training_dropout(_mask)?$/),
  },
];
