// Learns to read handwritten digits: a perceptron with one hidden layer, cross entropy and Adam.
//
//   bun examples/perceptron.ts [digits to train on] [epochs] [digits to test on]
import { setImmediate } from "node:timers/promises";
import { SingleBar } from "cli-progress";
import {
  codepaths,
  crossEntropy,
  formatCodepaths,
  getBackend,
  manualSeed,
  noGrad,
  optim,
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
  return x.matmul(w1).add(b1).relu().matmul(w2).add(b2);
}

/** Runs one step and returns the loss before it. Intermediate tensors are freed immediately. */
const learn = (parameters: Parameters, optimizer: optim.Adam, { images, labels }: Digits): number =>
  tidy(() => {
    const loss = crossEntropy(scores(images, parameters), labels);
    optimizer.zeroGrad();
    loss.backward();
    optimizer.step();
    return Number(loss.item());
  });

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
  for (const parameter of parameters) parameter.requiresGrad = true;
  const optimizer = new optim.Adam(parameters, { lr: 6e-3 });
  let step = 0;
  try {
    for (const batch of shuffledBatches(digits, epochs)) {
      const loss = learn(parameters, optimizer, batch);
      bar.update(++step, { loss: loss.toFixed(3) });
      await setImmediate(); // lets the bar's timer run
    }
  } finally {
    bar.stop(); // its timer would keep the process alive
  }
  return parameters;
}

/** The fraction of digits that are classified correctly. */
const accuracyOn = ({ images, labels }: Digits, parameters: Parameters): number =>
  noGrad(() =>
    tidy(() => Number(scores(images, parameters).argmax({ dim: 1 }).eq(labels).to("float32").mean().item())),
  );

/**
 * The numbers of training digits, epochs and test digits (default: all digits). Fewer on the software device, which is
 * slow.
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
