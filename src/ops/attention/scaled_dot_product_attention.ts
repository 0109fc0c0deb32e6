import { ShapeError } from "../../errors.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { GeneratorOptions } from "../random/distribution.ts";
import { attention } from "./flash_attention.ts";
import { checkNames } from "./options.ts";

/** What {@link scaledDotProductAttention} takes beside queries, keys and values: PyTorch's names. */
export interface ScaledDotProductAttentionOptions extends GeneratorOptions {
  /** bool, true = attends, or of the dtype of the query and added to the scores; broadcasts to [batch, heads, queries, keys]. */
  attnMask?: Tensor | undefined;
  /** Default 0. */
  dropoutP?: number | undefined;
  /** The first query attends to the first key, each further one to one key more. Together with `attnMask`, both count. Default false. */
  isCausal?: boolean | undefined;
  /** Default 1 / √dim. */
  scale?: number | undefined;
  /** Whether the heads of the query may be a multiple of those of key and value. Default false. */
  enableGqa?: boolean | undefined;
}

const optionNames: Readonly<Record<keyof ScaledDotProductAttentionOptions, true>> = {
  attnMask: true,
  dropoutP: true,
  isCausal: true,
  scale: true,
  enableGqa: true,
  generator: true,
};

/**
 * Attention as PyTorch's `torch.nn.functional.scaled_dot_product_attention` has it: {@link flashAttention} with other names and `isCausal`
 * aligned at the first key.
 *
 * @param query [B, H, M, D] or [B, M, D], a float
 * @param key [B, H, N, D] or [B, N, D]
 * @param value [B, H, N, E] or [B, N, E]
 * @returns [B, H, M, E] or [B, M, E]. Zeros for a query that attends to nothing
 *
 * @example
 * scaledDotProductAttention(query, key, value, { isCausal: true, dropoutP: 0.1 });
 *
 * @throws {ShapeError} @throws {DTypeError} @throws {ArgumentError} as {@link flashAttention}; without `enableGqa` for heads that differ.
 */
export function scaledDotProductAttention<D extends DType>(
  query: Tensor<D>,
  key: Tensor<D>,
  value: Tensor<D>,
  options: ScaledDotProductAttentionOptions = {},
): Tensor<D> {
  const operation = "scaledDotProductAttention";
  checkNames(operation, options, optionNames);
  const { attnMask, dropoutP, isCausal = false, scale, enableGqa = false, generator } = options;
  if (!enableGqa && query.rank === 4 && key.rank === 4 && query.shape[1] !== key.shape[1])
    throw new ShapeError(
      operation,
      "headsDiffer",
      `${query.shape[1]} heads of the query and ${key.shape[1]} of the key came; { enableGqa: true } shares those of the key`,
    );
  const given = attnMask?.dtype === "bool" ? { mask: attnMask as Tensor<"bool"> } : { bias: attnMask };
  const causal = isCausal ? "top-left" : false;
  return attention(operation, query, key, value, { ...given, causal, dropout: dropoutP, scale, generator }).out;
}
