/** Reference implementations of the layers, composed of plain operations, with the parameters by name. */
import {
  add,
  cat,
  div,
  exp,
  indexSelect,
  logSoftmax,
  matmul,
  mean,
  mul,
  narrow,
  neg,
  ones,
  reshape,
  softmax,
  sqrt,
  stack,
  sub,
  type Tensor,
  tanh,
  tensor,
  transpose,
  tril,
  where,
} from "../../src/index.ts";

/** A module's parameters by name. */
export type Weights = (name: string) => Tensor;

export const weightsOf =
  (parameters: ReadonlyMap<string, Tensor>): Weights =>
  (name) => {
    const found = parameters.get(name);
    if (!found) throw new Error(`there is no parameter ${name}, but ${[...parameters.keys()].join(", ")}`);
    return found;
  };

/** The parameters of a part. */
export const within =
  (weights: Weights, prefix: string): Weights =>
  (name) =>
    weights(`${prefix}.${name}`);

const plus = (...terms: readonly Tensor[]): Tensor => terms.reduce((sum, term) => add(sum, term) as Tensor);
const times = (a: Tensor, b: Tensor | number): Tensor => mul(a, b) as Tensor;

export const linear = (x: Tensor, weights: Weights, hasBias = true): Tensor => {
  const product = matmul(x, transpose(weights("weight"), 0, 1));
  return hasBias ? plus(product, weights("bias")) : product;
};

/** Rows of a table, selected by JavaScript numbers. */
export const rows = (table: Tensor, indices: readonly number[]): Tensor =>
  indexSelect(table, tensor(indices as number[], { dtype: "int32" }), { dim: 0 });

export function layerNorm(x: Tensor, weights: Weights, eps = 1e-5, hasBias = true): Tensor {
  const centered = sub(x, mean(x, { dim: -1, keepdim: true })) as Tensor;
  const variance = mean(times(centered, centered), { dim: -1, keepdim: true });
  const normed = times(div(centered, sqrt(add(variance, eps) as Tensor)) as Tensor, weights("weight"));
  return hasBias ? plus(normed, weights("bias")) : normed;
}

export const rmsNorm = (x: Tensor, weights: Weights, eps = 1e-6): Tensor =>
  times(div(x, sqrt(add(mean(times(x, x), { dim: -1, keepdim: true }), eps) as Tensor)) as Tensor, weights("weight"));

/** x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³))) */
export const geluTanh = (x: Tensor): Tensor => {
  const cubed = times(times(x, x), x);
  const inside = times(plus(x, times(cubed, 0.044715)), Math.sqrt(2 / Math.PI));
  return times(times(x, 0.5), add(tanh(inside), 1) as Tensor);
};

/** x / (1 + exp(−x)) */
export const silu = (x: Tensor): Tensor => div(x, add(exp(neg(x)), 1)) as Tensor;

/** Row `position` of [..., tokens, dim] rotated: pairs (i, i + dim/2) by position · base^(−2i/dim). */
export function rotated(x: Tensor, positions: readonly number[], base: number): Tensor {
  const dim = x.shape.at(-1)!;
  const table = (of: (angle: number) => number): Tensor =>
    tensor(
      positions.map((position) =>
        Array.from({ length: dim }, (_, at) => of(position * base ** ((-2 * (at % (dim / 2))) / dim))),
      ),
      { dtype: "float64" },
    );
  const [a, b] = [narrow(x, -1, 0, dim / 2), narrow(x, -1, dim / 2, dim / 2)];
  return plus(times(x, table(Math.cos)), times(cat([neg(b), a], { dim: -1 }), table(Math.sin)));
}

export interface AttentionShape {
  readonly heads: number;
  readonly keyValueHeads: number;
  readonly causal?: boolean;
  /** The base of rotary positions. */
  readonly base?: number;
  /** bool [tokens, tokens], in addition to `causal`. */
  readonly mask?: Tensor<"bool">;
  readonly hasBias?: boolean;
}

/** Computes attention head by head, with all scores. */
export function attention(x: Tensor, weights: Weights, shape: AttentionShape): Tensor {
  const { heads, keyValueHeads, causal = false, base, hasBias = true } = shape;
  const [batch, tokens] = x.shape;
  const projected = linear(x, within(weights, "queryKeyValue"), hasBias);
  const dim = projected.shape[2] / (heads + 2 * keyValueHeads);
  const positions = Array.from({ length: tokens }, (_, at) => at);
  const part = (head: number, turns: boolean): Tensor => {
    const own = narrow(projected, 2, head * dim, dim);
    return turns && base !== undefined ? rotated(own, positions, base) : own;
  };
  const open = ones([tokens, tokens], { dtype: "bool" });
  const mask = shape.mask ?? (causal ? tril(open) : open);
  const joined = Array.from({ length: heads }, (_, head) => {
    const own = Math.floor((head * keyValueHeads) / heads);
    const [q, k] = [part(head, true), part(heads + own, true)];
    const scores = times(matmul(q, transpose(k, 1, 2)), 1 / Math.sqrt(dim));
    return matmul(softmax(where(mask, scores, -Infinity) as Tensor), part(heads + keyValueHeads + own, false));
  });
  return linear(reshape(cat(joined, { dim: -1 }), [batch, tokens, heads * dim]), within(weights, "output"), hasBias);
}

export const mlp = (x: Tensor, weights: Weights): Tensor =>
  linear(geluTanh(linear(x, within(weights, "up"))), within(weights, "down"));

export const swiglu = (x: Tensor, weights: Weights): Tensor =>
  linear(
    times(silu(linear(x, within(weights, "gate"), false)), linear(x, within(weights, "up"), false)),
    within(weights, "down"),
    false,
  );

/** GPT-2's block. */
export function gptBlock(x: Tensor, weights: Weights, shape: AttentionShape): Tensor {
  const attended = attention(layerNorm(x, within(weights, "attentionNorm")), within(weights, "attention"), shape);
  const h = plus(x, attended);
  return plus(h, mlp(layerNorm(h, within(weights, "feedForwardNorm")), within(weights, "feedForward")));
}

/** Llama's block. */
export function llamaBlock(x: Tensor, weights: Weights, shape: AttentionShape): Tensor {
  const normed = rmsNorm(x, within(weights, "attentionNorm"));
  const h = plus(x, attention(normed, within(weights, "attention"), { ...shape, hasBias: false }));
  return plus(h, swiglu(rmsNorm(h, within(weights, "feedForwardNorm")), within(weights, "feedForward")));
}

/** Logits of GPT-2, for tokens [batch][places]. */
export function gpt(tokens: readonly (readonly number[])[], weights: Weights, layers: number, heads: number): Tensor {
  const table = weights("tokenEmbedding.weight");
  const places = narrow(weights("positionEmbedding.weight"), 0, 0, tokens[0].length);
  const start = plus(stack(tokens.map((row) => rows(table, row))), places);
  const shape = { heads, keyValueHeads: heads, causal: true };
  const x = Array.from({ length: layers }).reduce<Tensor>(
    (so, _, layer) => gptBlock(so, within(weights, `blocks.${layer}`), shape),
    start,
  );
  return matmul(layerNorm(x, within(weights, "finalNorm")), transpose(table, 0, 1));
}

/** Computes the mean over all places of −ln p of the next token. */
export function nextTokenLoss(logits: Tensor, targets: readonly (readonly number[])[]): Tensor {
  const logs = logSoftmax(logits, { dim: -1 });
  const own = targets.flatMap((row, batch) =>
    row.map((token, place) => narrow(narrow(narrow(logs, 0, batch, 1), 1, place, 1), 2, token, 1)),
  );
  return neg(mean(cat(own, { dim: 0 })));
}
