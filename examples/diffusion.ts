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
import { imageOf, numbersOf, save } from "./picture.ts";

const [path = "diffusion.png", trained = "20000", epochs = "3"] = process.argv.slice(2);
const batchSize = 32;

manualSeed(0);
const scheduler = diffusion.ddpm({ betaSchedule: "squaredCosine", predictionType: "velocity" });
const unet = new diffusion.UNet({
  ...{ inChannels: 4, outChannels: 4, blockOutChannels: [16, 32], attention: [false, true] },
  ...{ layersPerBlock: 1, heads: 2, contextWidth: null, groups: 8 },
});
const optimizer = new optim.AdamW(unet.parameters(), { lr: 2e-3, weightDecay: 0 });
const averages = new optim.AveragedWeights(unet.namedParameters(), { decay: 0.99 });
const { images } = readDigits("train", Number(trained));
const loader = new data.DataLoader(new data.TensorDataset(images), { batchSize, shuffle: true, dropLast: true });

/** The error of the noise that the model finds in noisy digits, at drawn timesteps. */
function lossOf(digits: Tensor): Tensor {
  const bright = digits.to("float32").div(127.5).sub(1);
  const x = pixelUnshuffle(bright.reshape([batchSize, 1, 28, 28]), 2); // [batch, 4, 14, 14] is faster
  const noise = randn(x.shape);
  const t = randint(0, scheduler.trainSteps, [batchSize]);
  return mseLoss(unet.forward(scheduler.addNoise(x, noise, t), t), scheduler.target(x, noise, t));
}

for (let epoch = 1; epoch <= Number(epochs); epoch++) {
  let [sum, steps] = [0, 0];
  for await (const [batch] of loader) {
    sum += tidy(() => {
      const loss = lossOf(batch!);
      loss.backward();
      return Number(loss.item());
    });
    optimizer.step();
    optimizer.zeroGrad();
    averages.update();
    steps++;
  }
  console.log(`epoch ${epoch}: loss ${(sum / steps).toFixed(4)}`);
}

const [columns, rows, cell, steps] = [10, 4, 4, 25];
const sampler = diffusion.ddim({ betaSchedule: "squaredCosine", predictionType: "velocity" });
const drawn = averages.withAverages(() =>
  sampler.sample(randn([columns * rows, 4, 14, 14]), (x, t) => unet.forward(x, t), { steps }),
);
const ink = numbersOf(pixelShuffle(drawn, 2).contiguous());

/** A digit's pixels as colors, dark where there is ink. */
const shades = (digit: number): string[] =>
  ink.slice(digit * 784, (digit + 1) * 784).map((value) => {
    const shade = Math.round(127.5 - 127.5 * value)
      .toString(16)
      .padStart(2, "0");
    return `#${shade}${shade}${shade}`;
  });
const digits = Array.from({ length: columns * rows }, (_, at) => {
  const [left, top] = [(at % columns) * 28 * cell, Math.floor(at / columns) * 28 * cell];
  return `<g transform="translate(${left} ${top})">${imageOf(shades(at), 28, cell)}</g>`;
});
const [width, height] = [columns * 28 * cell, rows * 28 * cell];
await save(
  path,
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">
<title>Digits that a diffusion model drew</title>
${digits.join("\n")}
</svg>
`,
);
