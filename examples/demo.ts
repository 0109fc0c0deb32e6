// Learns to read handwritten digits: a perceptron with one hidden layer, cross entropy and Adam, in tensors and their methods.
import { SingleBar } from "cli-progress";
import { codepaths, manualSeed, noGrad, randn, randperm, type Tensor, tidy, zeros } from "../src/index.ts";
import { type Digits, pixels, readDigits } from "./digits.ts";

const hidden = 128;
const classes = 10;
const batchSize = 128;
const epochs = 3;
const wanted = 0.95;

/** What is learned: the weights and biases of two layers. */
type Parameters = readonly Tensor[];

/** Uniform variance through the layers: He and others, "Delving Deep into Rectifiers", 2015. */
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

/** Adam's state: Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015. */
interface State {
  readonly parameters: Parameters;
  /** Running means of the gradients, and of their squares. */
  readonly means: readonly Tensor[];
  readonly squares: readonly Tensor[];
}

const learningRate = 2e-3;
const [beta1, beta2, epsilon] = [0.9, 0.999, 1e-8];

/** One step: the state after the step of number `step`, counted from 1. */
function adam({ parameters, means, squares }: State, gradients: readonly Tensor[], step: number): State {
  const m = means.map((mean, at) => mean.mul(beta1).add(gradients[at]!.mul(1 - beta1)));
  const v = squares.map((square, at) => square.mul(beta2).add(gradients[at]!.square().mul(1 - beta2)));
  const rate = (learningRate * Math.sqrt(1 - beta2 ** step)) / (1 - beta1 ** step);
  const moved = parameters.map((parameter, at) => parameter.sub(m[at]!.mul(rate).div(v[at]!.sqrt().add(epsilon))));
  return { parameters: moved, means: m, squares: v };
}

/** The loss of a batch, and the state after it. Everything in between is given back. */
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

/** The share of digits that are read right. */
const accuracyOn = ({ images, labels }: Digits, parameters: Parameters): number =>
  tidy(() => Number(scores(images, parameters).argmax({ dim: 1 }).eq(labels).to("float32").mean().item()));

function train(digits: Digits): Parameters {
  const count = digits.labels.size;
  const perEpoch = Math.floor(count / batchSize);
  const bar = new SingleBar({
    format: "  learning [{bar}] {value}/{total} batches, loss {loss}, {duration_formatted}",
    noTTYOutput: true,
    notTTYSchedule: 5000,
  });
  bar.start(epochs * perEpoch, 0, { loss: "…" });
  const parameters = [...layer(pixels, hidden), ...layer(hidden, classes)];
  const nothing = parameters.map(({ shape }) => zeros(shape));
  let state: State = { parameters, means: nothing, squares: nothing };
  for (let step = 0; step < epochs * perEpoch; step++) {
    if (step % perEpoch === 0) shuffle(count);
    const batch = order.slice({ start: (step % perEpoch) * batchSize, end: ((step % perEpoch) + 1) * batchSize });
    const { images, labels } = digits;
    const next = learn(
      state,
      { images: images.indexSelect(batch, { dim: 0 }), labels: labels.indexSelect(batch, { dim: 0 }) },
      step + 1,
    );
    state = next.state;
    bar.update(step + 1, { loss: next.loss.toFixed(3) });
  }
  bar.stop();
  return state.parameters;
}
