/** Makes a tokenizer of `@huggingface/tokenizers` look up tokens and merges in packed arrays instead of maps. */
import type { Tokenizer } from "@huggingface/tokenizers";
import type { PackedBpe } from "./bpe.ts";

/** The internals of the package's byte-pair encoding, in the pinned version. */
interface PackageModel {
  config: { readonly unk_token?: string | null };
  tokens_to_ids: Pick<Map<string, number>, "get" | "has">;
  vocab: Readonly<Record<number, string | undefined>>;
  unk_token_id: number | undefined;
  add_node(queue: { push(node: PackageNode): void }, node: PackageNode): void;
}

interface PackageNode {
  readonly token: string;
  readonly bias: number;
  readonly next: PackageNode;
  score: number;
}

/** @param tokenizer created from a file without vocabulary and merges, so that its maps have only the added tokens */
export function installPacked(tokenizer: Tokenizer, bpe: PackedBpe): void {
  const { model } = tokenizer as unknown as { readonly model: PackageModel };
  const { tokens_to_ids: addedIds, vocab: addedTexts } = model;
  model.tokens_to_ids = {
    get: (text) => addedIds.get(text) ?? bpe.idOf(text),
    has: (text) => addedIds.has(text) || bpe.idOf(text) !== undefined,
  };
  model.vocab = new Proxy(addedTexts, {
    get: (added, name) => added[name as unknown as number] ?? bpe.textOf(Number(name)),
  });
  const { unk_token: unknown } = model.config;
  model.unk_token_id = typeof unknown === "string" ? bpe.idOf(unknown) : undefined;
  model.add_node = (queue, node) => {
    const rank = bpe.rankOf(node.token, node.next.token);
    if (rank === undefined) return;
    node.score = rank + node.bias;
    queue.push(node);
  };
}
