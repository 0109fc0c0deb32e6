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
    applies: (name) =>
      !name.includes("_expanded") &&
      named(...[/^test_image_decoder/], ...[/^test_(momentum|nesterov|adagrad|adam|flexattention)/])(name),
    error: /operators? .* not supported/,
  },
  {
    reason: "elements of types without a dtype here: float8, and types of fewer than 4 bits",
    applies: named(/FLOAT8|FLOAT4E|FLOAT6E|[^0-9A-Z]U?INT2(_|$)|e4m3fn|e5m2|float4e|_e8m0_|_u?int2(_|$)/),
    error: /elements of type \w+ are|a cast to \w+ is not supported|quantization to type/,
  },
  {
    reason: "corners align by the whole length of the result, as in the standard's text, PyTorch and onnxruntime",
    applies: named(/^test_resize_downsample_scales_(cubic|linear)_align_corners$/),
  },
  {
    reason: "random numbers of another generator",
    applies: named(/^test_bernoulli/, /^test_training_dropout_(default|mask)/, /^test_training_dropout(_mask)?$/),
  },
  {
    reason: "values of 16 and 4 bits without a dtype are held in a wider one, so that they neither wrap nor saturate",
    applies: named(
      /^test_bitwise_not_3d$/,
      /^test_quantizelinear_(u?int16|int4)$/,
      /^test_castlike_FLOAT(16)?_to_U?INT4/,
    ),
  },
];
