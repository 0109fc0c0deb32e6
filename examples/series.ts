// Learns to continue a series, the sum of two waves, with an LSTM: it learns to predict the next value, then continues
// the series from its predictions.
//
//   bun examples/series.ts [steps]
import { cat, manualSeed, mseLoss, nn, noGrad, optim, type Tensor, tensor } from "../src/index.ts";

const steps = Number(process.argv[2] ?? 400);
const [batch, length, hidden] = [16, 50, 32];

/** Returns a value of the series. */
const wave = (t: number): number => Math.sin(t / 4) / 2 + Math.sin(t / 7) / 3;

/** Series that begin at these times, [length, series, 1]. */
const seriesFrom = (starts: readonly number[], count: number): Tensor =>
  tensor(Array.from({ length: count }, (_, at) => starts.map((start) => [wave(start + at)])));

class Forecast extends nn.Module<[x: Tensor], Tensor> {
  readonly lstm = new nn.LSTM(1, hidden);
  readonly output = new nn.Linear(hidden, 1);

  forward(x: Tensor): Tensor {
    return this.output.forward(this.lstm.forward(x).output);
  }

  /** Continues a series [length, 1, 1] by `count` values, each computed from the state after the previous ones. */
  continue(series: Tensor, count: number): Tensor {
    const values: Tensor[] = [];
    let { output, hidden, cell } = this.lstm.forward(series);
    for (let at = 0; at < count; at++) {
      values.push(this.output.forward(output.narrow(0, output.shape[0] - 1, 1)));
      ({ output, hidden, cell } = this.lstm.forward(values.at(-1)!, { hidden, cell }));
    }
    return cat(values, 0);
  }
}

manualSeed(0);
const model = new Forecast();
const optimizer = new optim.AdamW(model.parameters(), { lr: 1e-2 });
const schedule = optim.cosineWithWarmup({ warmup: 10, total: Math.max(steps, 11), floor: 0.05 });
for (let step = 0; step < steps; step++) {
  const starts = Array.from({ length: batch }, (_, at) => ((step * batch + at) * 37) % 1000);
  const series = seriesFrom(starts, length + 1);
  const loss = mseLoss(model.forward(series.narrow(0, 0, length)), series.narrow(0, 1, length));
  loss.backward();
  optimizer.scaleLearningRate(schedule(step));
  optim.clipGradNorm(model.parameters(), 1);
  optimizer.step();
  optimizer.zeroGrad();
  if (step % 20 === 0 || step === steps - 1) console.log(`step ${step}: loss ${Number(loss.item()).toFixed(6)}`);
}

const ahead = 40;
const [known, wanted] = [seriesFrom([2000], 100), seriesFrom([2100], ahead)];
const predicted = noGrad(() => model.continue(known, ahead));
const error = Math.sqrt(Number(mseLoss(predicted, wanted).item()));
console.log(`${ahead} values ahead: a root mean square error of ${error.toFixed(4)}`);
