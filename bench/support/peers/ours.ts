/**
 * Implements each operation with Orchard. It is prepared once and called often; each call returns the result to
 * compare.
 */
import {
  add,
  argmax,
  contiguous,
  crossEntropy,
  ctcLoss,
  embedding,
  exp,
  flashAttention,
  gelu,
  grad,
  gt,
  histogram,
  layerNorm,
  logSoftmax,
  matmul,
  nn,
  noGrad,
  optim,
  relu,
  scatterAdd,
  softmax,
  sort,
  sum,
  type Tensor,
  tidy,
  topk,
  transpose,
  variance,
  where,
} from "../../../src/index.ts";

export type Settings = Readonly<Record<string, number | boolean>>;
/** A prepared call. The caller disposes its result. */
export type Call = () => Tensor;
/** The tensors of a model or an optimizer, under PyTorch's names. */
export type Weights = ReadonlyMap<string, Tensor>;

/** A prepared operation, and the initial weights for the other library, if there are any. */
export interface Prepared {
  readonly call: Call;
  readonly weights?: Weights;
}

type Preparation = (operands: readonly Tensor[], settings: Settings) => Prepared;

const plain =
  (operation: (...operands: Tensor[]) => Tensor): Preparation =>
  (operands) => ({ call: () => operation(...operands) });

/** Returns the first of several results, and disposes the others. */
function first(results: Readonly<Record<string, Tensor>> | readonly Tensor[]): Tensor {
  const [kept, ...others] = Object.values(results) as [Tensor, ...Tensor[]];
  for (const other of others) other.dispose();
  return kept;
}

/** A training step. It returns the loss before the step, for the comparison. */
function training(
  model: { parameters(): Tensor[]; namedParameters(): Weights },
  lossOf: () => Tensor,
  options: { readonly lr: number },
): Prepared {
  const optimizer = new optim.AdamW(model.parameters(), options);
  return {
    weights: model.namedParameters(),
    call: () =>
      tidy(() => {
        const loss = lossOf();
        optimizer.zeroGrad();
        loss.backward();
        optimizer.step();
        return loss.detach();
      }),
  };
}

function makeMlp() {
  const [hidden, output] = [new nn.Linear(784, 512), new nn.Linear(512, 10)];
  return {
    model: new nn.Sequential(hidden, output),
    forward: (x: Tensor) => output.forward(relu(hidden.forward(x))),
  };
}

export const ours: Readonly<Record<string, Preparation>> = {
  add: plain((a, b) => add(a, b) as Tensor),
  exp: plain((a) => exp(a)),
  gelu: plain((a) => gelu(a)),
  where: ([a, b]) => {
    const condition = gt(a, b);
    return { call: () => where(condition, a, b) as Tensor };
  },
  sum: plain((a) => sum(a)),
  variance: plain((a) => variance(a)),
  argmax: plain((a) => argmax(a)),
  softmax: plain((a) => softmax(a, { dim: -1 })),
  layerNorm: plain((x, weight, bias) => layerNorm(x, [4096], { weight: weight, bias: bias })),
  crossEntropy: plain((scores, classes) => crossEntropy(scores, classes)),
  transposedCopy: plain((a) => contiguous(transpose(a, 0, 1))),
  topk: ([a], { count }) => ({ call: () => first({ ...topk(a, Number(count)) }) }),
  sort: plain((a) => first({ ...sort(a) })),
  embedding: plain((weight, indices) => embedding(indices, weight)),
  scatterAdd: plain((x, index, source) => scatterAdd(x, 0, index as Tensor<"int64">, source)),
  histogram: plain((x) => {
    const { hist, binEdges } = histogram(x, 100, { range: [-4, 4] });
    binEdges.dispose();
    return hist;
  }),
  ctcLoss: ([logits, classes]) => {
    logits.requiresGrad = true;
    const [times, batch] = logits.shape;
    const labels = add(classes, 1n) as Tensor<"int64">;
    const lengths = [new Array<number>(batch).fill(times), new Array<number>(batch).fill(labels.shape[1])] as const;
    return {
      call: () =>
        tidy(() => {
          const loss = ctcLoss(logSoftmax(logits, 2), labels, ...lengths);
          grad(loss, [logits]);
          return loss.detach();
        }),
    };
  },
  matmul: plain((a, b) => matmul(a, b)),
  attention: ([q, k, v], { causal }) => ({ call: () => flashAttention(q, k, v, { causal: causal === true }) }),
  attentionBackward: ([q, k, v, cotangent], { causal }) => {
    const inputs = [q, k, v];
    for (const leaf of inputs) leaf.requiresGrad = true;
    return {
      call: () =>
        tidy(() => {
          const out = flashAttention(q, k, v, { causal: causal === true });
          return first(grad(out, inputs, { gradOutputs: [cotangent] }));
        }),
    };
  },
  adamW: ([parameter, gradient]) => {
    const leaf = parameter;
    leaf.requiresGrad = true;
    leaf.grad = gradient;
    const optimizer = new optim.AdamW([leaf], { lr: 1e-3 });
    return {
      call: () => {
        optimizer.step();
        return leaf.detach();
      },
    };
  },
  mlpForward: ([x]) => {
    const { model, forward } = makeMlp();
    return { weights: model.namedParameters(), call: () => noGrad(() => tidy(() => forward(x))) };
  },
  mlp: ([x, classes]) => {
    const { model, forward } = makeMlp();
    return training(model, () => crossEntropy(forward(x), classes), { lr: 1e-3 });
  },
  gpt: ([tokens, targets], { layers, heads, width, context, vocabulary }) => {
    const sizes = { layers, heads, width, contextLength: context, vocabularySize: vocabulary, dropout: 0 };
    const model = new nn.GPT(sizes as ConstructorParameters<typeof nn.GPT>[0]);
    return training(model, () => crossEntropy(model.forward(tokens), targets, { dim: 2 }), { lr: 1e-4 });
  },
};
