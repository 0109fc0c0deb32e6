// Learns to draw handwritten digits: a variational autoencoder (Kingma and Welling, 2014), and new digits.
//
//   bun examples/vae.ts [vae.svg] [digits to train on] [epochs]
import {
  binaryCrossEntropyWithLogits,
  data,
  manualSeed,
  nn,
  noGrad,
  optim,
  randn,
  relu,
  split,
  type Tensor,
  tidy,
} from "../src/index.ts";
import { pixels, readDigits } from "./digits.ts";
import { drawDigits, numbersOf, save } from "./picture.ts";

const [path = "vae.svg", trained = "60000", epochs = "6"] = process.argv.slice(2);
const [batchSize, hidden, latent] = [128, 256, 12];

class VariationalAutoencoder extends nn.Module<[x: Tensor], { scores: Tensor; mean: Tensor; logVariance: Tensor }> {
  readonly encoder = new nn.Sequential(new nn.Linear(pixels, hidden), relu, new nn.Linear(hidden, 2 * latent));
  readonly decoder = new nn.Sequential(new nn.Linear(latent, hidden), relu, new nn.Linear(hidden, pixels));

  /** Logits of pixels after encoding, sampling and decoding. */
  forward(x: Tensor) {
    const [mean, logVariance] = split(this.encoder.forward(x), latent, 1) as [Tensor, Tensor];
    const drawn = mean.add(logVariance.div(2).exp().mul(randn(mean.shape)));
    return { scores: this.decoder.forward(drawn), mean, logVariance };
  }
}

manualSeed(0);
const model = new VariationalAutoencoder();
const optimizer = new optim.AdamW(model.parameters(), { lr: 2e-3, weightDecay: 0 });
const { images } = readDigits("train", Number(trained));
const loader = new data.DataLoader(new data.TensorDataset(images), { batchSize, shuffle: true, dropLast: true });

/**
 * The negative evidence lower bound per digit: the reconstruction error plus the divergence of the code from a normal
 * distribution.
 */
function lossOf(x: Tensor): Tensor {
  const { scores, mean, logVariance } = model.forward(x);
  const ofPixels = binaryCrossEntropyWithLogits(scores, x, { reduction: "sum" });
  const ofCode = logVariance.add(1).sub(mean.square()).sub(logVariance.exp()).sum().mul(-0.5);
  return ofPixels.add(ofCode).div(x.shape[0]);
}

for (let epoch = 1; epoch <= Number(epochs); epoch++) {
  let [sum, steps] = [0, 0];
  for await (const [batch] of loader) {
    sum += tidy(() => {
      const loss = lossOf(batch.to("float32").div(255));
      loss.backward();
      return Number(loss.item());
    });
    optimizer.step();
    optimizer.zeroGrad();
    steps++;
  }
  console.log(`epoch ${epoch}: loss ${(sum / steps).toFixed(2)} a digit`);
}

const [columns, rows, cell] = [12, 5, 3];
const ink = numbersOf(noGrad(() => model.decoder.forward(randn([columns * rows, latent])).sigmoid()));
await save(path, drawDigits("Digits that a variational autoencoder drew", ink, columns, cell));
