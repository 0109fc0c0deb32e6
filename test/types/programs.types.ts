/**
 * Programs as new users write them, without casts or assertions. The compiler is the test: `bun run check`, and
 * `page_types.test.ts` with the options of `bun init`.
 */
import { add, crossEntropy, data, nn, optim, randn, type Tensor, tensor, zeros } from "../../src/index.ts";

/** Causal attention of several heads. */
export class SelfAttention extends nn.Module<[x: Tensor], Tensor> {
  readonly projection = new nn.Linear(32, 96);
  readonly output = new nn.Linear(32, 32);

  constructor(readonly heads: number) {
    super();
  }

  override forward(x: Tensor): Tensor {
    const [batch, length, width] = x.shape;
    const heads = [batch, length, this.heads, width / this.heads];
    const [q, k, v] = this.projection
      .forward(x)
      .chunk(3, -1)
      .map((part) => part.reshape(heads).transpose(1, 2));
    if (!q || !k || !v) throw new Error("three parts");
    const scores = q.matmul(k.transpose(-2, -1)).mul(q.shape.at(-1) ** -0.5);
    return this.output.forward(scores.softmax(-1).matmul(v).transpose(1, 2).reshape(x.shape));
  }
}

/** A layer with an adapter of low rank, as a linear layer. */
export class Adapted extends nn.Linear {
  readonly down = new nn.Linear(this.inputs, 4, false);
  readonly up = new nn.Linear(4, this.outputs, false);

  override forward(x: Tensor): Tensor {
    return add(super.forward(x), this.up.forward(this.down.forward(x)));
  }
}

/** Trains a classifier and returns the loss of each epoch. */
export async function train(epochs: number): Promise<number[]> {
  const model = new nn.Sequential(new Adapted(8, 16), new nn.ReLU(), new nn.Dropout(0.1), new nn.Linear(16, 3));
  const optimizer = new optim.AdamW(model.parameters(), { lr: 1e-3 });
  const loader = new data.DataLoader(new data.TensorDataset(randn([64, 8]), zeros([64], { dtype: "int64" })), 16);
  const losses: number[] = [];
  for (let epoch = 0; epoch < epochs; epoch++) {
    let [sum, count] = [0, 0];
    for await (const [x, target] of loader) {
      const loss = crossEntropy(model.forward(x), target);
      optimizer.zeroGrad();
      loss.backward();
      optimizer.step();
      sum += loss.item() * x.shape[0];
      count += x.shape[0];
    }
    losses.push(sum / count);
  }
  return losses;
}

/** Returns the most likely classes of a batch, with their probabilities. */
export function best(logits: Tensor, names: readonly string[]): string[] {
  const [batch, classes] = logits.shape;
  if (classes !== names.length) throw new Error(`expected ${names.length} classes, got ${classes}`);
  const probabilities = logits.softmax(-1).toArray();
  const places = logits.argmax({ dim: -1 }).toArray({ rank: 1 });
  const lines: string[] = [];
  for (let row = 0; row < batch; row++) {
    const place = Number(places[row]);
    lines.push(`${names[place]}: ${(100 * probabilities[row][place]).toFixed(1)} %`);
  }
  return lines;
}

/** Returns the mean of each column, and the confusion of two lists of classes. */
export function statistics(): { means: number[]; confusion: number[][] } {
  const x = tensor([
    [1, 2],
    [3, 4],
  ]);
  const means: number[] = x.mean({ dim: 0 }).toArray();
  const confusion: number[][] = [
    [0, 0],
    [0, 0],
  ];
  const [rows, columns] = x.shape;
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) {
      const counts = confusion[row];
      if (counts) counts[column] = x.toArray()[row][column] + (counts[column] ?? 0);
    }
  return { means, confusion };
}
