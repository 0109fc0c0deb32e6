/** Tests that a compiled step equals a plain step, bit by bit, after its optimizer has loaded another state. */
import { expect, test } from "bun:test";
import { compile, manualSeed, nn, optim, randn, type Tensor, withBackend } from "../../src/index.ts";

const optimizers = {
  momentum: (parameters: Tensor[]) => new optim.SGD(parameters, { lr: 0.05, momentum: 0.9 }),
  AdamW: (parameters: Tensor[]) => new optim.AdamW(parameters, { lr: 0.01 }),
  RMSprop: (parameters: Tensor[]) => new optim.RMSprop(parameters, { lr: 0.01, centered: true }),
  Adagrad: (parameters: Tensor[]) => new optim.Adagrad(parameters, { lr: 0.01 }),
} as const;

/** Runs ten steps. Returns a function that runs five more. */
function trained(name: keyof typeof optimizers, isCompiled: boolean) {
  manualSeed(1);
  const model = new nn.Linear(6, 3);
  const optimizer = optimizers[name](model.parameters());
  const step = (x: Tensor) => {
    optimizer.zeroGrad();
    const loss = model.forward(x).square().mean();
    loss.backward();
    optimizer.step();
    return loss;
  };
  const run = isCompiled ? compile(step, { state: [model, optimizer] }) : step;
  const losses: number[] = [];
  const steps = () => {
    for (let at = 0; at < 5; at++) losses.push((run(randn([8, 6])) as Tensor).item() as number);
  };
  steps();
  const saved = JSON.stringify(optimizer.stateDict());
  steps();
  expect(JSON.stringify(optimizer.stateDict())).not.toBe(saved);
  return { losses, optimizer, model, steps };
}

test.each(Object.keys(optimizers) as (keyof typeof optimizers)[])(
  "replays of %s are bit-identical to plain steps, state included",
  (name) =>
    withBackend("cpu", () => {
      const results = [true, false].map((isCompiled) => {
        const { losses, optimizer, model, steps } = trained(name, isCompiled);
        optimizer.loadStateDict(trained(name, false).optimizer.stateDict() as never);
        manualSeed(3);
        steps();
        return [losses, model.weight.toArray(), JSON.stringify(optimizer.stateDict())];
      });
      expect(results[0]).toEqual(results[1]);
    }),
);
