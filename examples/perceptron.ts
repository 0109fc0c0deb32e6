// Learns to read handwritten digits: a perceptron with one hidden layer, cross entropy and Adam, in tensors and their
// methods.
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
const minAccuracy = 0.95;

/** The weights and biases of two layers. */
type Parameters = readonly Tensor[];

/** He initialization, which preserves the variance of activations: "Delving Deep into Rectifiers", 2015. */
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

/** The parameters, with the first and second moments of their gradients. */
interface State {
  readonly parameters: Parameters;
  readonly firstMoments: readonly Tensor[];
  readonly secondMoments: readonly Tensor[];
}

const learningRate = 6e-3;
const [beta1, beta2, epsilon] = [0.9, 0.999, 1e-8];

/** The state after one step, counted from 1: Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015. */
function adam({ parameters, firstMoments, secondMoments }: State, gradients: readonly Tensor[], step: number): State {
  const rate = (learningRate * Math.sqrt(1 - beta2 ** step)) / (1 - beta1 ** step);
  const m = firstMoments.map((moment, i) => moment.mul(beta1).add(gradients[i]!.mul(1 - beta1)));
  const v = secondMoments.map((moment, i) => moment.mul(beta2).add(gradients[i]!.square().mul(1 - beta2)));
  const updated = parameters.map((parameter, i) => parameter.sub(m[i]!.mul(rate).div(v[i]!.sqrt().add(epsilon))));
  return { parameters: updated, firstMoments: m, secondMoments: v };
}

/** The state after a batch, and the loss before it. Intermediate tensors are freed at once. */
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

/** Shuffled batches. An incomplete batch at the end of an epoch is dropped. */
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
  const zeroMoments = parameters.map(({ shape }) => zeros(shape));
  let state: State = { parameters, firstMoments: zeroMoments, secondMoments: zeroMoments };
  let step = 0;
  try {
    for (const batch of shuffledBatches(digits, epochs)) {
      const next = tidy(() => learn(state, batch, ++step));
      state = next.state;
      bar.update(step, { loss: next.loss.toFixed(3) });
      await setImmediate(); // lets the bar's timer run
    }
  } finally {
    bar.stop(); // its timer would keep the process alive
  }
  return state.parameters;
}

/** The fraction of digits that are classified correctly. */
const accuracyOn = ({ images, labels }: Digits, parameters: Parameters): number =>
  tidy(() => Number(scores(images, parameters).argmax({ dim: 1 }).eq(labels).to("float32").mean().item()));

/**
 * How many digits to train on, for how many epochs, and how many to test on (default: all). Fewer on the software
 * device, which is slow.
 */
const isSoftware = getBackend() === "metal" && process.platform === "linux";
const [trained = isSoftware ? 20_000 : 60_000, epochs = isSoftware ? 2 : 5, tested] = process.argv.slice(2).map(Number);
if (!(trained >= batchSize && epochs >= 1))
  throw new Error(`expected at least ${batchSize} digits and one epoch, got ${trained} and ${epochs}`);

manualSeed(1);
const started = performance.now();
const digits = readDigits("train", trained);
const test = readDigits("t10k", tested);
console.log(`${digits.labels.size} digits to train on for ${epochs} epochs; ${test.labels.size} others to test on`);
resetCodepaths();
const parameters = await train(digits, epochs);
const accuracy = accuracyOn(test, parameters);
const seconds = (performance.now() - started) / 1000;
console.log(`\noperation, backend, calls, reason\n${formatCodepaths(codepaths())}`);
console.log(`\naccuracy ${(100 * accuracy).toFixed(2)} % on unseen digits, after ${seconds.toFixed(1)} s`);
if (accuracy < minAccuracy) {
  console.error(`expected an accuracy of at least ${100 * minAccuracy} %`);
  process.exitCode = 1;
}
