// Learns to read handwritten digits with a convolutional network: convolutions, batch norms, the one-cycle policy.
// Instead of pooling, convolutions with stride 2 halve the pictures: they cost a quarter of convolutions with stride 1.
//
//   bun examples/cnn.ts [digits to train on] [epochs] [digits to test on]
import { crossEntropy, data, manualSeed, nn, noGrad, optim, type Tensor, tidy } from "../src/index.ts";
import { readDigits } from "./digits.ts";

const [trained, epochs, tested] = [60_000, 3, 10_000].map((fallback, at) => Number(process.argv[2 + at] ?? fallback));
const batchSize = 128;

manualSeed(0);
const { BatchNorm2d, Conv2d, Flatten, Linear, ReLU, Sequential } = nn;
const model = new Sequential(
  new Conv2d(1, 16, 5, { stride: 2, padding: 2, bias: false }),
  new BatchNorm2d(16),
  new ReLU(),
  new Conv2d(16, 32, 3, { padding: 1, bias: false }),
  new BatchNorm2d(32),
  new ReLU(),
  new Conv2d(32, 32, 3, { stride: 2, padding: 1, bias: false }),
  new BatchNorm2d(32),
  new ReLU(),
  new Flatten(),
  new Linear(32 * 7 * 7, 64),
  new ReLU(),
  new Linear(64, 10),
);

/** uint8 [count, 784] as [count, 1, 28, 28], around 0. */
const pictures = (images: Tensor): Tensor => images.to("float32").div(255).sub(0.13).div(0.31).reshape([-1, 1, 28, 28]);

/** Returns the fraction of digits that are recognized. */
function accuracy(part: "t10k", count: number): number {
  const { images, labels } = readDigits(part, count);
  let right = 0;
  for (let from = 0; from < count; from += 500) {
    const size = Math.min(500, count - from);
    right += tidy(() =>
      noGrad(() => {
        const read = model.forward(pictures(images.narrow(0, from, size))).argmax(1);
        return Number(
          read
            .eq(labels.narrow(0, from, size))
            .to("float32")
            .sum()
            .item(),
        );
      }),
    );
  }
  return right / count;
}

const { images, labels } = readDigits("train", trained);
const loader = new data.DataLoader(new data.TensorDataset(images, labels), {
  batchSize,
  shuffle: true,
  dropLast: true,
});
const steps = loader.length! * epochs;
const optimizer = new optim.AdamW(model.parameters(), { lr: 1e-2 });
const schedule = optim.oneCycle({ total: steps });
const report = Math.max(1, Math.floor(steps / 10));

let [step, sum] = [0, 0];
for (let epoch = 0; epoch < epochs; epoch++)
  for await (const [x, y] of loader) {
    optimizer.scaleLearningRate(schedule(step++));
    sum += tidy(() => {
      const loss = crossEntropy(model.forward(pictures(x)), y);
      loss.backward();
      return Number(loss.item());
    });
    optimizer.step();
    optimizer.zeroGrad();
    if (step % report !== 0) continue;
    console.log(`step ${step} of ${steps}: loss ${(sum / report).toFixed(4)}`);
    sum = 0;
  }

model.eval();
console.log(`accuracy ${(100 * accuracy("t10k", tested)).toFixed(2)} % on ${tested} unseen digits`);
