import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { flag, someNumber } from "../../core/kinds.ts";
import { type Given, named, operand, optional, parameters } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import type { DType } from "../../tensor/dtype.ts";
import { plainList } from "../../tensor/frozen.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { broadcastShapes, elementCount } from "../../tensor/shape.ts";
import { hasDType, type Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { aGenerator, type GeneratorOptions } from "../random/distribution.ts";
import { expand } from "../view/expand.ts";
import { reshape } from "../view/reshape.ts";
import { attention } from "./flash_attention.ts";

/** Options of {@link scaledDotProductAttention}, with PyTorch's names. */
export interface ScaledDotProductAttentionOptions extends GeneratorOptions {
  /**
   * bool (true = attends), or of the query's dtype and added to the scores; broadcasts to [batch, heads, queries,
   * keys].
   */
  attnMask?: Tensor | undefined;
  /** Dropout probability in [0, 1). Default 0. */
  dropoutP?: number | undefined;
  /** Causal masking: query i attends to keys 0 to i. Can't be combined with `attnMask`. Default false. */
  isCausal?: boolean | undefined;
  /** Factor of the products of queries and keys. Default 1 / √dim. */
  scale?: number | undefined;
  /** Whether the query may have a multiple of the key's and value's heads (grouped-query attention). Default false. */
  enableGqa?: boolean | undefined;
}

/**
 * Computes attention with the interface of PyTorch's `torch.nn.functional.scaled_dot_product_attention`: {@link
 * flashAttention} with other names, and with `isCausal` aligned to the first key.
 *
 * @param query […, M, D], of a float dtype
 * @param key […, N, D]; axes before the last two broadcast with those of the query
 * @param value […, N, E]
 * @returns […, M, E]; zeros for a query that attends to nothing
 *
 * @example
 * scaledDotProductAttention(query, key, value, { isCausal: true, dropoutP: 0.1 });
 *
 * @throws {ShapeError} @throws {DTypeError} @throws {ArgumentError} as {@link flashAttention}; also if heads differ
 * without `enableGqa` (unless query or key has one head), and for `attnMask` with `isCausal`.
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
  const given = hasDType(attnMask, "bool") ? { mask: attnMask } : { bias: attnMask };
  const causal = isCausal ? "top-left" : false;
  const settings = { ...given, causal, dropout: dropoutP, scale, generator } as const;
  const operands = [query, key, value] as const;
  return tidy(() => {
    if (isOneBatch(operands)) return attention(operation, query, key, value, settings).out;
    const grouped = options.enableGqa ? 1 : 0; // the axis of heads, whose size may differ
    const batch = broadcastShapes(operation, ...operands.map(({ shape }) => shape.slice(0, -2 - grouped)));
    const inOne = (x: Tensor): Tensor => {
      const rest = x.shape.slice(x.rank - 2 - grouped);
      return reshape(expand(x, [...batch, ...rest]), [elementCount(batch), ...rest]);
    };
    const [q, k, v] = tupleOf(operands.map(inOne), 3);
    const mask = attnMask && inOne(attnMask.rank < 2 + grouped ? expand(attnMask, pairsOf(q, k)) : attnMask);
    const masks = hasDType(mask, "bool") ? { mask } : { bias: mask };
    const { out } = attention(operation, q, k, v, { ...settings, ...masks });
    return reshape(out, [...batch, ...out.shape.slice(1)]);
  });
}

/** Tests whether the operands already form a batch, with or without heads, and need no reshape. */
function isOneBatch([query, key, value]: readonly [Tensor, Tensor, Tensor]): boolean {
  const { rank } = query;
  if ((rank !== 3 && rank !== 4) || key.rank !== rank || value.rank !== rank) return false;
  const isShared = rank === 3 || query.shape[1] % Math.max(key.shape[1], 1) === 0;
  const [[batch], [keyBatch, keyHeads], [valueBatch, valueHeads]] = [query.shape, key.shape, value.shape].map(
    plainList,
  );
  return isShared && keyBatch === batch && valueBatch === batch && valueHeads === keyHeads;
}

/** Returns the shape of the scores without the batch. */
const pairsOf = (q: Tensor, k: Tensor): number[] => [...q.shape.slice(1, -1), k.shape.at(-2)!];

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

/** Rejects combinations that PyTorch rejects and {@link flashAttention} accepts. */
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
      'expected attnMask or isCausal, got both. flashAttention with { mask, causal: "top-left" } accepts both.',
    );
  const [heads, shared] = [query.shape.at(-3), key.shape.at(-3)];
  if (!enableGqa && query.rank === 4 && key.rank === 4 && heads !== shared && shared !== 1 && heads !== 1)
    throw new ShapeError(
      operation,
      "headsDiffer",
      `expected the query and the key to have equally many heads, got ${heads} and ${shared}; ` +
        "pass { enableGqa: true } for grouped heads",
    );
}
