// Learns to draw handwritten digits: a diffusion model (Ho, Jain and Abbeel, 2020), and new digits.
//
//   bun examples/diffusion.ts [diffusion.png] [digits to train on] [epochs]
import {
  data,
  diffusion,
  manualSeed,
  mseLoss,
  optim,
  pixelShuffle,
  pixelUnshuffle,
  randint,
  randn,
  type Tensor,
  tidy,
} from "../src/index.ts";
import { readDigits } from "./digits.ts";
import { drawDigits, numbersOf, save } from "./picture.ts";

const [path = "diffusion.png", trained = "10000", epochs = "2"] = process.argv.slice(2);
const batchSize = 32;

manualSeed(0);
const options = { betaSchedule: "squaredCosine", predictionType: "velocity" } as const;
const scheduler = diffusion.ddpm(options);
const unet = new diffusion.UNet({
  inChannels: 4,
  outChannels: 4,
  blockOutChannels: [16, 32],
  attention: [false, true],
  layersPerBlock: 1,
  heads: 2,
  contextWidth: null,
  groups: 8,
});
const total = Number(epochs) * Math.floor(Number(trained) / batchSize);
const factor = optim.cosineWithWarmup({ warmup: 0, total, floor: 0.05 });
const optimizer = new optim.AdamW(unet.parameters(), { lr: 3e-3, weightDecay: 0 });
const averages = new optim.AveragedWeights(unet.namedParameters(), { decay: 0.99 });
const { images } = readDigits("train", Number(trained));
const loader = new data.DataLoader(new data.TensorDataset(images), { batchSize, shuffle: true, dropLast: true });

/** Returns the error of the velocity that the model predicts for noisy digits, at drawn timesteps. */
function lossOf(digits: Tensor): Tensor {
  const bright = digits.to("float32").div(127.5).sub(1);
  const x = pixelUnshuffle(bright.reshape([batchSize, 1, 28, 28]), 2); // [batch, 4, 14, 14] is faster
  const noise = randn(x.shape);
  const t = randint(0, scheduler.trainSteps, [batchSize]);
  return mseLoss(unet.forward(scheduler.addNoise(x, noise, t), t), scheduler.target(x, noise, t));
}

let done = 0;
for (let epoch = 1; epoch <= Number(epochs); epoch++) {
  let [sum, steps] = [0, 0];
  for await (const [batch] of loader) {
    sum += tidy(() => {
      const loss = lossOf(batch);
      loss.backward();
      return Number(loss.item());
    });
    optimizer.scaleLearningRate(factor(done++));
    optimizer.step();
    optimizer.zeroGrad();
    averages.update();
    steps++;
  }
  console.log(`epoch ${epoch}: loss ${(sum / steps).toFixed(4)}`);
}

const [columns, rows, cell, steps] = [12, 3, 3, 25];
const sampler = diffusion.ddim(options);
const drawn = averages.withAverages(() =>
  sampler.sample(randn([columns * rows, 4, 14, 14]), (x, t) => unet.forward(x, t), { steps }),
);
const ink = numbersOf(pixelShuffle(drawn, 2).add(1).div(2).contiguous());
await save(path, drawDigits("Digits that a diffusion model drew", ink, columns, cell));
