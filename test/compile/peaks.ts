/** Prints the peaks of memory of plain and compiled steps on cpu, as JSON: `{ MLP: [plain, compiled], … }`. */
import * as orchard from "../../src/index.ts";
import { compile, manualSeed, nn, optim, randint, randn, type Tensor, withBackend } from "../../src/index.ts";

const makers = {
  MLP: () => {
    const model = new nn.Sequential(new nn.Linear(256, 512), new nn.GELU(), new nn.Linear(512, 512), new nn.ReLU());
    return { model, x: randn([256, 256]), lossOf: (x: Tensor) => model.forward(x).square().mean() };
  },
  GPT: () => {
    const sizes = { vocabularySize: 64, contextLength: 64, layers: 2, heads: 2, width: 64 };
    const [model, targets] = [new nn.GPT(sizes), randint(0, 64, [8 * 64])];
    const lossOf = (x: Tensor) => orchard.crossEntropy(model.forward(x).reshape([-1, 64]), targets);
    return { model: model as nn.Module, x: randint(0, 64, [8, 64]) as Tensor, lossOf };
  },
};

/** Returns the peak of a step's memory beyond the model, the optimizer and the batch. */
function peakOf(name: keyof typeof makers, isCompiled: boolean): number {
  manualSeed(6);
  const { model, x, lossOf } = makers[name]();
  const optimizer = new optim.SGD(model.parameters(), { lr: 0.1 });
  const step = (batch: Tensor) => {
    const loss = lossOf(batch);
    loss.backward();
    optimizer.step();
    optimizer.zeroGrad();
    return loss;
  };
  Bun.gc(true);
  const before = orchard.memory().host.liveBytes;
  const compiled = compile(step, { state: [model, optimizer] });
  const run = isCompiled ? compiled : step;
  for (let call = 0; call < 4; call++) orchard.tidy(() => void run(x));
  if (isCompiled && !/[12] replays/.test(compiled.explain())) throw new Error(compiled.explain());
  Bun.gc(true);
  orchard.resetPeakMemory();
  orchard.tidy(() => void run(x));
  const { peakBytes } = orchard.memory().host;
  compiled.reset();
  return peakBytes - before;
}

const names = Object.keys(makers) as (keyof typeof makers)[];
withBackend("cpu", () => {
  const peaks = names.map((name) => [name, [peakOf(name, false), peakOf(name, true)]]);
  console.log(JSON.stringify(Object.fromEntries(peaks)));
});
