/** Compiled training steps have the same bits as plain ones, for any change between the calls. */
import { heapStats } from "bun:jsc";
import { describe, expect, test } from "bun:test";
import * as orchard from "../../src/index.ts";
import { compile, manualSeed, nn, optim, type Tensor } from "../../src/index.ts";
import type { FusedOptimizer, FusedOptions } from "../../src/optim/fused.ts";
import { hash, Random } from "../ops/samples.ts";
import { checkKernels } from "../support/checked.ts";
import { repeats, usually } from "../support/repeats.ts";

checkKernels();

type Optimizer = FusedOptimizer<FusedOptions>;
type Step = (x: Tensor, y: Tensor) => unknown;

const { randn, randint } = orchard;

const backends = ["cpu", "metal"] as const;

const optimizers: Readonly<Record<string, (parameters: Tensor[]) => unknown>> = {
  SGD: (parameters) => new optim.SGD(parameters, { lr: 0.05 }),
  momentum: (parameters) => new optim.SGD(parameters, { lr: 0.05, momentum: 0.9, dampening: 0.5 }),
  AdamW: (parameters) => new optim.AdamW(parameters, { lr: 0.01 }),
  amsgrad: (parameters) => new optim.Adam(parameters, { lr: 0.01, amsgrad: true, weightDecay: 0.1 }),
  NAdam: (parameters) => new optim.NAdam(parameters, { lr: 0.01 }),
  RAdam: (parameters) => new optim.RAdam(parameters, { lr: 0.01 }),
  Lion: (parameters) => new optim.Lion(parameters, { lr: 0.01 }),
  RMSprop: (parameters) => new optim.RMSprop(parameters, { lr: 0.01, momentum: 0.5, centered: true }),
  Adagrad: (parameters) => new optim.Adagrad(parameters, { lr: 0.01 }),
  Adadelta: (parameters) => new optim.Adadelta(parameters, { lr: 0.5 }),
  Adafactor: (parameters) => new optim.Adafactor(parameters, { lr: 0.1, weightDecay: 0.1 }),
  ASGD: (parameters) => new optim.ASGD(parameters, { lr: 0.1, lambd: 0.1, t0: 1, weightDecay: 0.1 }),
  Rprop: (parameters) => new optim.Rprop(parameters, { lr: 0.01 }),
  Muon: (parameters) => new optim.Muon(parameters, { lr: 0.02, weightDecay: 0.1 }),
  Adamax: (parameters) => new optim.Adamax(parameters, { lr: 0.01 }),
};

/** A net with dropout and running statistics, and how a step of it zeroes gradients. */
function makeStep(name: string, zeroes: string) {
  manualSeed(1);
  const model = new nn.Sequential(
    ...(name === "Muon" // this optimizer's parameters must be matrices
      ? [new nn.Linear(6, 8, { bias: false }), new nn.ReLU(), new nn.Linear(8, 3, { bias: false })]
      : [new nn.Linear(6, 8), new nn.BatchNorm1d(8), new nn.ReLU(), new nn.Dropout(0.2), new nn.Linear(8, 3)]),
  );
  const optimizer = optimizers[name](model.parameters()) as Optimizer;
  const step = (x: Tensor, y: Tensor) => {
    if (zeroes === "before") optimizer.zeroGrad();
    const loss = orchard.crossEntropy(model.forward(x) as Tensor, y);
    loss.backward();
    const norm = optim.clipGradNorm(model.parameters(), 0.5);
    optimizer.step();
    if (zeroes === "after") optimizer.zeroGrad();
    return { loss, norm };
  };
  return { model, optimizer, step };
}

const listOf = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (_, each) => (orchard.Tensor.isTensor(each) ? each.toArray() : each)));

/** Fewer in usual runs on metal, which is simulated: every fourth step has labels of the same alignment. */
const stepsOn = (backend: (typeof backends)[number]): number =>
  backend === "metal" ? repeats({ usual: 25, all: 50 }) : 50;

/** Runs steps with a cosine schedule, and returns every loss and all state at the end. */
function train(name: string, zeroes: string, isCompiled: boolean, steps: number) {
  const { model, optimizer, step } = makeStep(name, zeroes);
  const compiled = compile(step, { state: [model, optimizer] });
  const run: Step = isCompiled ? compiled : step;
  const schedule = optim.cosineWithWarmup({ warmup: 5, total: steps });
  manualSeed(2);
  const results: unknown[] = [];
  const data = randn([64, 6]);
  const labels = randint(0, 3, [64]);
  for (let at = 0; at < steps; at++) {
    optimizer.scaleLearningRate(schedule(at));
    const first = (at * 7) % 48; // each batch is a view at another offset
    results.push(listOf(run(data.narrow(0, first, 16), labels.narrow(0, first, 16))));
  }
  const gradients = model.parameters().map(({ grad }) => grad?.toArray() ?? null);
  const after = randn([3]).toArray(); // the generator's state is the same as after plain steps
  const updates = optimizer.slots.map((slot) => slot.steps);
  const result = [results, listOf(model.stateDict()), listOf(optimizer.stateDict()), gradients, after, updates];
  return { result, explained: compiled.explain() };
}

describe("compiled steps with a schedule, dropout, running statistics and clipped gradients", () => {
  const cases = backends.flatMap((backend) =>
    Object.keys(optimizers).map((name, at) => [backend, name, ["before", "after", "never"][at % 3]] as const),
  );
  const isUsual = ([backend, name]: (typeof cases)[number]) =>
    backend === "cpu" || ["SGD", "AdamW", "Adafactor"].includes(name);
  test.each(usually(cases, isUsual))(
    "%s: %s is bit-identical to plain steps, gradients zeroed %s the step",
    (backend, name, zeroes) => {
      const steps = stepsOn(backend);
      const both = () => [train(name, zeroes, true, steps), train(name, zeroes, false, steps)] as const;
      const [compiled, plain] = orchard.withBackend(backend, both);
      expect(compiled.result).toEqual(plain.result);
      const replays = [...compiled.explained.matchAll(/(\d+) replays/g)].map(([, count]) => Number(count));
      // on metal, the four alignments of the labels in int64 have separate programs
      const least = steps - (backend === "metal" ? 9 : 5);
      expect(replays.reduce((sum, count) => sum + count)).toBeGreaterThanOrEqual(least);
    },
  );
});

test.each(backends)("%s: a GPT with dropout and tied weights is bit-identical to plain steps", (backend) => {
  const run = (isCompiled: boolean) => {
    manualSeed(3);
    const sizes = { vocabularySize: 17, contextLength: 8, layers: 2, heads: 2, width: 16 };
    const model = new nn.GPT({ ...sizes, dropout: 0.1 });
    const optimizer = new optim.AdamW(model.parameters(), { lr: 0.01 });
    const step = (x: Tensor, y: Tensor) => {
      const loss = orchard.crossEntropy(model.forward(x).reshape([-1, 17]), y.reshape([-1]));
      loss.backward();
      optimizer.step();
      optimizer.zeroGrad();
      return loss;
    };
    const own = isCompiled ? compile(step, { state: [model, optimizer] }) : step;
    const losses = Array.from({ length: 12 }, () => own(randint(0, 17, [2, 8]), randint(0, 17, [2, 8])).item());
    return [losses, listOf(model.stateDict())];
  };
  const [compiled, plain] = orchard.withBackend(backend, () => [run(true), run(false)]);
  expect(compiled).toEqual(plain);
});

test.each(backends)("%s: gradients that three calls accumulate, of which the last one updates", (backend) => {
  const run = (isCompiled: boolean) => {
    const { model, optimizer } = makeStep("AdamW", "never");
    const step = (x: Tensor, y: Tensor, isLast: boolean) => {
      const loss = orchard.crossEntropy(model.forward(x) as Tensor, y);
      loss.backward();
      if (!isLast) return loss;
      optim.clipGradNorm(model.parameters(), 0.5);
      optimizer.step();
      optimizer.zeroGrad();
      return loss;
    };
    const compiled = compile(step, { state: [model, optimizer] });
    const own = isCompiled ? compiled : step;
    const losses = Array.from({ length: 24 }, (_, at) => own(randn([8, 6]), randint(0, 3, [8]), at % 3 === 2).item());
    return { result: [losses, listOf(model.stateDict())], explained: compiled.explain() };
  };
  const [compiled, plain] = orchard.withBackend(backend, () => [run(true), run(false)] as const);
  expect(compiled.result).toEqual(plain.result);
  expect(compiled.explained.match(/[1-9]\d* replays/g)).toHaveLength(3);
});

test.each(backends)("%s: steps of L-BFGS whose closure is compiled have plain bits", (backend) => {
  const run = (isCompiled: boolean) => {
    manualSeed(5);
    const model = new nn.Sequential(new nn.Linear(6, 8), new nn.Tanh(), new nn.Linear(8, 3));
    const optimizer = new optim.LBFGS(model.parameters(), { lineSearchFn: "strongWolfe", maxIter: 6 });
    const [x, y] = [randn([16, 6]), randint(0, 3, [16])];
    const closure = () => {
      optimizer.zeroGrad();
      const loss = orchard.crossEntropy(model.forward(x), y);
      loss.backward();
      return loss;
    };
    const compiled = compile(closure, { state: model });
    const losses = [1, 2, 3, 4].map(() => optimizer.step(isCompiled ? compiled : closure).item());
    return { result: [losses, listOf(model.stateDict())], explained: compiled.explain() };
  };
  const [compiled, plain] = orchard.withBackend(backend, () => [run(true), run(false)] as const);
  expect(compiled.result).toEqual(plain.result);
  expect(compiled.explained).toMatch(/[1-9]\d replays/);
});

test("replays leave no objects and no native memory behind", () => {
  orchard.withBackend("cpu", () => {
    const { model, optimizer, step } = makeStep("AdamW", "after");
    const compiled = compile(step, { state: [model, optimizer] });
    const [x, y] = [randn([16, 6]), randint(0, 3, [16])];
    const objectsAfter = (calls: number): number => {
      for (let call = 0; call < calls; call++) orchard.tidy(() => void compiled(x, y));
      Bun.gc(true);
      return heapStats().objectCount;
    };
    const before = objectsAfter(500);
    const bytes = orchard.memory().host.liveBytes;
    expect(objectsAfter(repeats({ usual: 3_000, all: 1_000_000 }))).toBeLessThan(before + 1_000);
    expect(orchard.memory().host.liveBytes).toBeLessThanOrEqual(bytes);
  });
});

describe("programs have guards", () => {
  /** Changes that a caller may make between calls. */
  const changes: Readonly<Record<string, (own: ReturnType<typeof makeStep>, random: Random) => void>> = {
    nothing: () => undefined,
    mode: ({ model }, random) => void model.train(random.next() < 0.5),
    rate: ({ optimizer }, random) => optimizer.setLearningRate(0.1 * random.next()),
    dropout: ({ model }, random) => void Object.assign(model.modules()[4], { p: random.integer(0, 3) / 4 }),
    freeze: ({ model }, random) => {
      (model.modules()[1] as nn.Linear).weight.requiresGrad = random.next() < 0.5;
    },
    load: ({ model }) => void model.loadStateDict(model.stateDict()),
    seed: (_, random) => void manualSeed(random.integer(0, 99)),
    zero: ({ optimizer }) => optimizer.zeroGrad(),
    decay: ({ optimizer }, random) => void Object.assign(optimizer.groups[0], { weightDecay: random.next() }),
  };

  function run(seed: number, isCompiled: boolean): unknown {
    const random = new Random(hash(`guards ${seed}`));
    const own = makeStep(["SGD", "AdamW"][seed % 2], ["before", "after", "never"][seed % 3]);
    const compiled = compile(own.step, { state: [own.model, own.optimizer], variants: 1 + (seed % 4) });
    const step: Step = isCompiled ? compiled : own.step;
    manualSeed(seed);
    const results: unknown[] = [];
    for (let call = 0; call < 40; call++) {
      const names = Object.keys(changes);
      changes[random.next() < 0.7 ? "nothing" : names[random.integer(0, names.length - 1)]](own, random);
      const rows = random.next() < 0.8 ? 8 : 4;
      const x = random.next() < 0.8 ? randn([rows, 6]) : randn([6, rows]).transpose(0, 1);
      const dtype = random.next() < 0.9 ? "int64" : "int32";
      results.push(listOf(step(x, randint(0, 3, [rows], { dtype }))));
    }
    if (isCompiled) expect(compiled.variants).toBeLessThanOrEqual(1 + (seed % 4));
    return [results, listOf(own.model.stateDict())];
  }

  const seeds = Array.from({ length: repeats({ usual: 6, all: 60 }) }, (_, seed) => seed);
  const cases = backends.flatMap((backend) => seeds.map((seed) => [backend, seed] as const));
  const isUsual = ([backend, seed]: (typeof cases)[number]) => backend === "cpu" || seed === 5;
  test.each(usually(cases, isUsual))(
    "%s: results are right after drawn changes between the calls, seed %d",
    (backend, seed) => {
      const [compiled, plain] = orchard.withBackend(backend, () => [run(seed, true), run(seed, false)]);
      expect(compiled).toEqual(plain!);
    },
  );
});
