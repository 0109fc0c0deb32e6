import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { flag, someNumber } from "../../core/kinds.ts";
import { type Given, named, operand, optional, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { aGenerator, type GeneratorOptions } from "../random/distribution.ts";
import { select } from "../view/slice.ts";
import { unsqueeze } from "../view/squeeze.ts";
import { attention } from "./flash_attention.ts";

/** What {@link scaledDotProductAttention} takes beside queries, keys and values: PyTorch's names. */
export interface ScaledDotProductAttentionOptions extends GeneratorOptions {
  /**
   * bool, true = attends, or of the dtype of the query and added to the scores; broadcasts to [batch, heads, queries,
   * keys].
   */
  attnMask?: Tensor | undefined;
  /** Default 0. */
  dropoutP?: number | undefined;
  /**
   * The first query attends to the first key, each further one to one key more. Not together with `attnMask`. Default
   * false.
   */
  isCausal?: boolean | undefined;
  /** Default 1 / √dim. */
  scale?: number | undefined;
  /** Whether the heads of the query may be a multiple of those of key and value. Default false. */
  enableGqa?: boolean | undefined;
}

/**
 * Attention as PyTorch's `torch.nn.functional.scaled_dot_product_attention` has it: {@link flashAttention} with other
 * names and `isCausal` aligned at the first key.
 *
 * @param query [B, H, M, D], [B, M, D] or [M, D], a float
 * @param key [B, H, N, D], [B, N, D] or [N, D]
 * @param value [B, H, N, E], [B, N, E] or [N, E]
 * @returns [B, H, M, E], [B, M, E] or [M, E]. Zeros for a query that attends to nothing
 *
 * @example
 * scaledDotProductAttention(query, key, value, { isCausal: true, dropoutP: 0.1 });
 *
 * @throws {ShapeError} @throws {DTypeError} @throws {ArgumentError} as {@link flashAttention}; also for heads that
 * differ without `enableGqa`, unless the key has one, and for `attnMask` with `isCausal`.
 */
export function scaledDotProductAttention<D extends DType>(
  query: Tensor<D>,
  key: Tensor<D>,
  value: Tensor<D>,
  ...options: Given<ScaledDotProductAttentionOptions, ["attnMask", "dropoutP", "isCausal"]>
): Tensor<D>;
export function scaledDotProductAttention(...values: unknown[]): Tensor {
  const operation = "scaledDotProductAttention";
  const { query, key, value, ...options } = attentionParameters(values);
  const { attnMask, dropoutP, isCausal, scale, generator } = options;
  checkTogether(operation, query, key, options);
  const given = attnMask?.dtype === "bool" ? { mask: attnMask as Tensor<"bool"> } : { bias: attnMask };
  const causal = isCausal ? "top-left" : false;
  const own = { ...given, causal, dropout: dropoutP, scale, generator } as const;
  return tidy(() => {
    if (query.rank !== 2) return attention(operation, query, key, value, own).out;
    const [q, k, v] = [query, key, value].map((rows) => unsqueeze(rows, 0)) as [Tensor, Tensor, Tensor];
    return select(attention(operation, q, k, v, own).out, 0, 0);
  });
}

const attentionParameters = parameters("scaledDotProductAttention", {
  query: operand(aTensor),
  key: operand(aTensor),
  value: operand(aTensor),
  attnMask: optional(aTensor),
  dropoutP: optional(someNumber),
  isCausal: optional(flag, false),
  scale: named(someNumber),
  enableGqa: named(flag, false),
  generator: named(aGenerator),
});

/** What PyTorch refuses and {@link flashAttention} does not. */
function checkTogether(
  operation: string,
  query: Tensor,
  key: Tensor,
  { attnMask, isCausal = false, enableGqa = false }: ScaledDotProductAttentionOptions,
): void {
  if (attnMask && isCausal)
    throw new ArgumentError(
      operation,
      "maskTwice",
      'expected attnMask or isCausal, got both; flashAttention with { mask, causal: "top-left" } has both',
    );
  const [heads, shared] = [query.shape.at(-3), key.shape.at(-3)];
  if (!enableGqa && query.rank === 4 && key.rank === 4 && heads !== shared && shared !== 1)
    throw new ShapeError(
      operation,
      "headsDiffer",
      `expected as many heads of the query as of the key, got ${heads} heads and ${shared}; ` +
        "{ enableGqa: true } shares those of the key",
    );
}
