/** Makes a tokenizer of `@huggingface/tokenizers` look up tokens and merges in packed arrays instead of maps. */
import type { Tokenizer } from "@huggingface/tokenizers";
import { PackedBpe } from "./bpe.ts";
import type { Packed } from "./file.ts";
import type { PackedUnigram } from "./unigram.ts";

/** The internals of the package's models, in the pinned version. */
interface PackageModel {
  readonly config: { readonly unk_token?: string | null; readonly unk_id?: number };
  tokens_to_ids: Pick<Map<string, number>, "get" | "has">;
  vocab: Record<number, string | undefined>;
  unk_token_id: number | undefined;
}

interface PackageBpe extends PackageModel {
  add_node(queue: { push(node: PackageNode): void }, node: PackageNode): void;
}

interface PackageUnigram extends PackageModel {
  unk_token: string | undefined;
  unk_score: number;
  min_score: number;
  scores: ArrayLike<number>;
  bos_token: string;
  bos_token_id: number | undefined;
  eos_token: string | undefined;
  eos_token_id: number | undefined;
  trie: { common_prefix_search(characters: readonly string[], start: number): Iterable<string> };
}

interface PackageNode {
  readonly token: string;
  readonly bias: number;
  readonly next: PackageNode;
  score: number;
}

/** @param tokenizer created from a file without vocabulary, so that its maps have only the added tokens */
export function installPacked(tokenizer: Tokenizer, packed: Packed): void {
  const { model } = tokenizer as { readonly model: PackageModel };
  if (packed instanceof PackedBpe) installBpe(model as PackageBpe, packed);
  else installUnigram(model as PackageUnigram, packed);
}

function installTexts(model: PackageModel, packed: Packed): void {
  const { tokens_to_ids: addedIds, vocab: addedTexts } = model;
  model.tokens_to_ids = {
    get: (text) => addedIds.get(text) ?? packed.idOf(text),
    has: (text) => addedIds.has(text) || packed.idOf(text) !== undefined,
  };
  model.vocab = new Proxy(addedTexts, {
    get: (added, name) => added[name as unknown as number] ?? packed.textOf(Number(name)),
  });
}

function installBpe(model: PackageBpe, bpe: PackedBpe): void {
  installTexts(model, bpe);
  const { unk_token: unknown } = model.config;
  model.unk_token_id = typeof unknown === "string" ? bpe.idOf(unknown) : undefined;
  model.add_node = (queue, node) => {
    const rank = bpe.rankOf(node.token, node.next.token);
    if (rank === undefined) return;
    node.score = rank + node.bias;
    queue.push(node);
  };
}

/** The difference between the lowest score and the score of the unknown token. */
const UNKNOWN_BELOW = 10;

function installUnigram(model: PackageUnigram, unigram: PackedUnigram): void {
  // The file without vocabulary has one token, the empty text, since the package needs one.
  (model.tokens_to_ids as Map<string, number>).delete("");
  if (model.vocab[0] === "") delete model.vocab[0];
  installTexts(model, unigram);
  const unknown = model.config.unk_id!;
  const scores = Float64Array.from(unigram.arrays.scores);
  model.min_score = scores.reduce((least, score) => Math.min(least, score), Infinity);
  model.unk_score = model.min_score - UNKNOWN_BELOW;
  scores[unknown] = model.unk_score;
  model.scores = scores;
  model.unk_token_id = unknown;
  model.unk_token = unigram.textOf(unknown);
  model.bos_token_id = unigram.idOf(model.bos_token);
  model.eos_token_id = model.eos_token === undefined ? undefined : unigram.idOf(model.eos_token);
  model.trie = { common_prefix_search: (characters, start) => unigram.prefixes(characters, start) };
}
