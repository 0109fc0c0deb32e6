// Learns to read handwritten digits: a perceptron with one hidden layer, cross entropy and Adam, in tensors and their methods.
import { setImmediate } from "node:timers/promises";
import { SingleBar } from "cli-progress";
import {
  codepaths,
  formatCodepaths,
  getBackend,
  manualSeed,
  noGrad,
  randn,
  randperm,
  resetCodepaths,
  type Tensor,
  tidy,
  zeros,
} from "../src/index.ts";
import { type Digits, pixels, readDigits } from "./digits.ts";

const hidden = 128;
const classes = 10;
const batchSize = 128;
const wanted = 0.95;

/** What is learned: the weights and biases of two layers. */
type Parameters = readonly Tensor[];

/** Weights that keep the variance of what passes through: He and others, "Delving Deep into Rectifiers", 2015. */
const layer = (inputs: number, outputs: number): Tensor[] => [
  randn([inputs, outputs]).mul(Math.sqrt(2 / inputs)),
  zeros([outputs]),
];

/** The score of each class: [batch, 784] → [batch, 10]. */
function scores(images: Tensor, [w1, b1, w2, b2]: Parameters): Tensor {
  const x = images.to("float32").div(255);
  return x.matmul(w1!).add(b1!).relu().matmul(w2!).add(b2!);
}

/** The mean of −log p(label). */
const crossEntropy = (logits: Tensor, labels: Tensor<"int64">): Tensor =>
  logits.logSoftmax({ dim: 1 }).gather(labels.unsqueeze(1), { dim: 1 }).mean().neg();

/** The parameters, with the running means of their gradients and of the gradients' squares. */
interface State {
  readonly parameters: Parameters;
  readonly means: readonly Tensor[];
  readonly squares: readonly Tensor[];
}

const learningRate = 6e-3;
const [beta1, beta2, epsilon] = [0.9, 0.999, 1e-8];

/** The state after one step, counted from 1: Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015. */
function adam({ parameters, means, squares }: State, gradients: readonly Tensor[], step: number): State {
  const rate = (learningRate * Math.sqrt(1 - beta2 ** step)) / (1 - beta1 ** step);
  const m = means.map((mean, at) => mean.mul(beta1).add(gradients[at]!.mul(1 - beta1)));
  const v = squares.map((square, at) => square.mul(beta2).add(gradients[at]!.square().mul(1 - beta2)));
  const moved = parameters.map((parameter, at) => parameter.sub(m[at]!.mul(rate).div(v[at]!.sqrt().add(epsilon))));
  return { parameters: moved, means: m, squares: v };
}

/** The state after a batch, and the loss before it. What is made in between is given back at once. */
function learn(state: State, { images, labels }: Digits, step: number): { state: State; loss: number } {
  return tidy(() => {
    const parameters = state.parameters.map((parameter) => parameter.detach());
    for (const parameter of parameters) parameter.requiresGrad = true;
    const loss = crossEntropy(scores(images, parameters), labels);
    loss.backward();
    const gradients = parameters.map(({ grad }) => grad!);
    return { state: noGrad(() => adam({ ...state, parameters }, gradients, step)), loss: Number(loss.item()) };
  });
}

/** The digits in a new order, in batches; what is left over waits for the next order. */
function* shuffledBatches({ images, labels }: Digits, epochs: number): Generator<Digits> {
  const count = labels.size;
  for (let epoch = 0; epoch < epochs; epoch++) {
    const order = randperm(count);
    for (let start = 0; start + batchSize <= count; start += batchSize) {
      const batch = order.slice({ start, end: start + batchSize });
      yield { images: images.indexSelect(batch, { dim: 0 }), labels: labels.indexSelect(batch, { dim: 0 }) };
    }
  }
}

async function train(digits: Digits, epochs: number): Promise<Parameters> {
  const format = "learning [{bar}] {percentage} %, batch {value} of {total}, loss {loss}";
  const bar = new SingleBar({ format, noTTYOutput: true, notTTYSchedule: 5000 });
  bar.start(epochs * Math.floor(digits.labels.size / batchSize), 0, { loss: "…" });
  const parameters = [...layer(pixels, hidden), ...layer(hidden, classes)];
  const nothing = parameters.map(({ shape }) => zeros(shape));
  let state: State = { parameters, means: nothing, squares: nothing };
  let step = 0;
  try {
    for (const batch of shuffledBatches(digits, epochs)) {
      const next = tidy(() => learn(state, batch, ++step));
      state = next.state;
      bar.update(step, { loss: next.loss.toFixed(3) });
      await setImmediate(); // the bar's timer has its turn
    }
  } finally {
    bar.stop(); // its timer would keep the process alive
  }
  return state.parameters;
}

/** The share of digits that are read right. */
const accuracyOn = ({ images, labels }: Digits, parameters: Parameters): number =>
  tidy(() => Number(scores(images, parameters).argmax({ dim: 1 }).eq(labels).to("float32").mean().item()));

/** How many digits are learned from, how often, and how many test it (all): less on the software device, which is there to check and not to be fast. */
const isSoftware = getBackend() === "metal" && process.platform === "linux";
const [learned = isSoftware ? 20_000 : 60_000, epochs = isSoftware ? 2 : 5, tested] = process.argv.slice(2).map(Number);
if (!(learned >= batchSize && epochs >= 1)) throw new Error(`at least ${batchSize} digits are learned from, once`);

manualSeed(1);
const started = performance.now();
const digits = readDigits("train", learned);
const test = readDigits("t10k", tested);
console.log(`${digits.labels.size} digits to learn from, ${epochs} times; ${test.labels.size} others to test with`);
resetCodepaths();
const parameters = await train(digits, epochs);
const accuracy = accuracyOn(test, parameters);
const seconds = (performance.now() - started) / 1000;
console.log(`\noperation, backend, calls, reason\n${formatCodepaths(codepaths())}`);
console.log(
  `\naccuracy ${(100 * accuracy).toFixed(2)} % on digits that it has not seen, after ${seconds.toFixed(1)} s`,
);
if (accuracy < wanted) {
  console.error(`At least ${100 * wanted} % is wanted.`);
  process.exitCode = 1;
}
