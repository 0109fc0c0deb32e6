import { operand, parameters } from "../../core/parameters.ts";
import { contiguous } from "../../ops/copy/copy.ts";
import { indexSelect } from "../../ops/indexing/gather.ts";
import { checkedIndex } from "../../ops/indexing/indices.ts";
import { reshape } from "../../ops/view/reshape.ts";
import { narrow } from "../../ops/view/slice.ts";
import { dequantize } from "../../quant/dequantize/dequantize.ts";
import { formatName } from "../../quant/formats.ts";
import { type ProductPrecision, quantizedMatmul } from "../../quant/matmul/matmul.ts";
import { aQuantizedTensor, QuantizedTensor } from "../../quant/quantized_tensor.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { Module } from "../layers/module.ts";
import { matrixSizes } from "./linear.ts";

const quantizedEmbeddingParameters = parameters("QuantizedEmbedding", { weight: operand(aQuantizedTensor) });
const forwardParameters = parameters("QuantizedEmbedding.forward", { indices: operand(aTensor) });

/**
 * Looks up rows of a quantized table by index; only these rows are dequantized. The table is frozen. The state has the
 * names of MLX's layer: the parts of the table are `weight`, `scales` and `biases`.
 *
 * | parameter | shape |
 * |---|---|
 * | `weight` | a quantized tensor, [rows, width] |
 *
 * @example
 * const table = new QuantizedEmbedding(quantizeGgml(randn([50_257, 768]), "q8_0"));
 * table.forward(tensor([[1, 2, 3]], { dtype: "int32" })); // [1, 3, 768]
 *
 * @throws {ShapeError} for a table that is not a matrix.
 */
export class QuantizedEmbedding extends Module<[indices: Tensor], Tensor> {
  readonly rows: number;
  readonly width: number;
  readonly weight: QuantizedTensor;
  /** Precision of products when the table is also the output head (tied weights). It is not part of the state. */
  precision: ProductPrecision = "exact";

  constructor(weight: QuantizedTensor);
  constructor(...values: unknown[]) {
    super();
    const { weight } = quantizedEmbeddingParameters(values);
    const [rows, width] = matrixSizes("QuantizedEmbedding", weight);
    this.rows = rows;
    this.width = width;
    this.weight = weight;
  }

  /**
   * Looks up rows.
   *
   * @param indices integers, [...]
   * @returns [..., width], of the dtype that the table dequantizes to
   *
   * @throws {ShapeError} `indexOutOfRange`, for an index without a row. @throws {DTypeError} for indices that are not
   * integers.
   */
  override forward(indices: Tensor): Tensor {
    const given = forwardParameters([indices]).indices;
    const index = reshape(checkedIndex("QuantizedEmbedding", given), [given.size]);
    const rows = this.dequantized((part) => indexSelect(part, 0, index), given.size);
    return reshape(rows, [...given.shape, this.width]);
  }

  /** @internal Returns `count` adjacent rows, [count, width]. */
  rowsFrom(first: number, count: number): Tensor {
    return this.dequantized((part) => contiguous(narrow(part, 0, first, count)), count);
  }

  /** Multiplies by the table, as an output head with tied weights. @param x [..., width] @returns [..., rows] */
  asLinear(x: Tensor): Tensor {
    return quantizedMatmul(x, this.weight, { precision: this.precision });
  }

  private dequantized(select: (part: Tensor) => Tensor, count: number): Tensor {
    const { format, dtype, parts } = this.weight;
    this.weight.checkAlive("QuantizedEmbedding");
    const selectedParts = {
      packed: select(parts.packed),
      scales: parts.scales && select(parts.scales),
      biases: parts.biases && select(parts.biases),
    };
    using selected = new QuantizedTensor(format, [count, this.width], dtype, selectedParts);
    return dequantize(selected);
  }

  /** @internal */
  override details(): string {
    return `${this.rows}, ${this.width}, ${formatName(this.weight.format)}`;
  }
}
