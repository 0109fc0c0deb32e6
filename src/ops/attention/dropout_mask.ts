import { execute } from "../../backend/dispatch.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { full } from "../creation/full.ts";
import { attentionDropoutMask } from "./passes.ts";
import type { AttentionAttributes } from "./problem.ts";

/** @internal Returns which probabilities a call's dropout keeps, as bool [batch, heads, queries, keys]. */
export function dropoutMask(
  { dropout, packed }: Pick<AttentionAttributes, "dropout" | "packed">,
  pairs: readonly number[],
): Tensor<"bool"> {
  if (dropout) return execute(attentionDropoutMask, [], pairs, "bool", { dropout, packed });
  return full(pairs, true);
}
