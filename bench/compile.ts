// Compares compiled functions on the cpu backend with plain calls: small training steps, and chains of elementwise
// operations. Ratios above 1: the compiled function is faster.

import * as orchard from "../src/index.ts";
import { compile, nn, optim, randint, randn, type Tensor } from "../src/index.ts";
import { interleaved, table } from "./support/measure.ts";

type Run = () => unknown;

/** A function as a plain and as a compiled call, with the number of calls per round. */
interface Candidate {
  readonly plain: Run;
  readonly compiled: Run;
  readonly calls: number;
}

function training(model: nn.Module, lossOf: () => Tensor, calls: number): Candidate {
  const optimizer = new optim.AdamW(model.parameters(), { lr: 1e-4 });
  const step = () => {
    const loss = lossOf();
    loss.backward();
    optimizer.step();
    optimizer.zeroGrad();
    return loss;
  };
  return { plain: step, compiled: compile(step, { state: [model, optimizer] }), calls };
}

function net(sizes: readonly [number, number, number], rows: number): Candidate {
  const [inputs, hidden, outputs] = sizes;
  const model = new nn.Sequential(new nn.Linear(inputs, hidden), new nn.ReLU(), new nn.Linear(hidden, outputs));
  const [x, y] = [randn([rows, inputs]), randn([rows, outputs])];
  return training(model, () => model.forward(x).sub(y).square().mean(), 2000 / rows);
}

function gpt(): Candidate {
  const sizes = { vocabularySize: 256, contextLength: 64, layers: 4, heads: 4, width: 128 };
  const model = new nn.GPT(sizes);
  const [x, y] = [randint(0, 256, [8, 64]), randint(0, 256, [8 * 64])];
  return training(model, () => orchard.crossEntropy(model.forward(x).reshape([-1, 256]), y), 2);
}

function chain(elements: number): Candidate {
  const [x, y] = [randn([elements]), randn([elements])];
  const fn = (): Tensor => x.add(y).mul(y).add(3).abs().sub(x).relu().square().add(y);
  return { plain: fn, compiled: compile(fn), calls: Math.max(1, Math.round(2 ** 22 / elements)) };
}

orchard.setBackend("cpu");
const candidates: Readonly<Record<string, Candidate>> = {
  "step of a net 64-64-1, batch of 32": net([64, 64, 1], 32),
  "step of a net 784-512-10, batch of 64": net([784, 512, 10], 64),
  "step of a GPT of 0.8 M parameters": gpt(),
  "8 operations on 64 K elements": chain(2 ** 16),
  "8 operations on 1 M elements": chain(2 ** 20),
  "8 operations on 16 M elements": chain(2 ** 24),
};

const rows = Object.entries(candidates).map(([name, { plain, compiled, calls }]) => {
  const repeated = (run: Run) => () => {
    for (let call = 0; call < calls; call++) orchard.tidy(() => void run());
  };
  const [before, after] = interleaved({ plain: repeated(plain), compiled: repeated(compiled) }, 15);
  const [slow, fast] = [before!.median / calls, after!.median / calls];
  return [name, slow.toFixed(3), fast.toFixed(3), (slow / fast).toFixed(2)];
});
console.log(table(["", "plain, ms", "compiled, ms", "ratio"], rows));
