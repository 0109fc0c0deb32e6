/** Invalid arguments of optimizers are typed errors that say what to do. */
import { describe, expect, test } from "bun:test";
import { ArgumentError, DTypeError, optim, ShapeError, type Tensor, zeros } from "../../src/index.ts";

const { AdamW, SGD, Lion, Muon, clipGradNorm, clipGradValue, GradScaler, cosineWithWarmup, linear, oneCycle } = optim;
const w = (shape = [2, 3]) => zeros(shape, { requiresGrad: true });
const shared = w();

type Mistake = readonly [what: string, call: () => unknown, type: new (...rest: never[]) => Error, message: RegExp];

const parameters: readonly Mistake[] = [
  ["no parameters", () => new AdamW([]), ArgumentError, /expected at least one parameter, got none/],
  ["an empty group", () => new AdamW([{ parameters: [] }]), ArgumentError, /expected at least one parameter, got none/],
  ["something else", () => new AdamW(3 as never), ArgumentError, /list of tensors.*got 3/],
  ["no tensor", () => new AdamW([w(), 1 as never]), ArgumentError, /expected parameter 1 to be a tensor, got 1/],
  [
    "groups beside tensors",
    () => new AdamW([{ parameters: [w()] }, w()] as never),
    ArgumentError,
    /expected every element to be a group .* got a tensor as element 1/,
  ],
  [
    "a tensor twice",
    () => new AdamW([shared, w(), shared]),
    ArgumentError,
    /parameters 0 and 2 are the same tensor float32\[2, 3\]/,
  ],
  [
    "a tensor in two groups",
    () => new SGD([{ parameters: [shared] }, { parameters: [shared] }]),
    ArgumentError,
    /same tensor/,
  ],
  [
    "two of a name",
    () => new SGD([{ parameters: new Map([["a", w()]]) }, { parameters: new Map([["a", w()]]) }]),
    ArgumentError,
    /named a/,
  ],
  ["integers", () => new AdamW([zeros([2], { dtype: "int32" })]), DTypeError, /or complex dtype, got int32\[2\]/],
  ["no gradient", () => new AdamW([zeros([2])]), ArgumentError, /require gradients; set requiresGrad/],
  ["a result", () => new AdamW([w().mul(2)]), ArgumentError, /result of an operation/],
  ["an expanded tensor", () => new AdamW([expanded()]), ArgumentError, /axis 0 .* is expanded/],
  [
    "LBFGS in shares",
    () => optim.sharded(new optim.LBFGS([w()])),
    ArgumentError,
    /expected an optimizer with a separate state per parameter, got LBFGS/,
  ],
  [
    "what is no matrix, for Muon",
    () => new Muon([w(), w([3]), w([1, 2, 3])]),
    ShapeError,
    /1 \(float32\[3\]\), 2 \(float32\[1, 2, 3\]\)/,
  ],
];

function expanded(): Tensor {
  const x = zeros([1, 3]).expand([2, 3]).detach();
  x.requiresGrad = true;
  return x;
}

const options: readonly Mistake[] = [
  [
    "lr -1",
    () => new AdamW([w()], { lr: -1 }),
    ArgumentError,
    /\[AdamW\] expected lr to be a number of at least 0, got -1/,
  ],
  ["lr NaN", () => new SGD([w()], { lr: Number.NaN }), ArgumentError, /lr.*got NaN/],
  ["lr of a group", () => new SGD([{ parameters: [w()], lr: -2 }]), ArgumentError, /lr.*got -2/],
  [
    "lr later",
    () => Object.assign(new SGD([w()]).groups[0], { lr: Number.NaN }) && stepWith(Number.NaN),
    ArgumentError,
    /got NaN/,
  ],
  ["betas [1, 0.9]", () => new AdamW([w()], { betas: [1, 0.9] }), ArgumentError, /betas\[0\].*below 1, got 1/],
  ["one beta", () => new Lion([w()], { betas: 0.9 as never }), ArgumentError, /two numbers/],
  ["alpha 1", () => new optim.RMSprop([w()], { alpha: 1 }), ArgumentError, /alpha to be .*below 1, got 1/],
  ["rho 2", () => new optim.Adadelta([w()], { rho: 2 }), ArgumentError, /rho to be a number from 0 to 1, got 2/],
  ["lrDecay -1", () => new optim.Adagrad([w()], { lrDecay: -1 }), ArgumentError, /lrDecay/],
  ["momentumDecay -1", () => new optim.NAdam([w()], { momentumDecay: -1 }), ArgumentError, /momentumDecay/],
  ["betas of RAdam", () => new optim.RAdam([w()], { betas: [0, 1] }), ArgumentError, /betas\[1\]/],
  ["one eps", () => new optim.Adafactor([w()], { eps: 1e-3 as never }), ArgumentError, /eps to be two numbers/],
  ["a first eps -1", () => new optim.Adafactor([w()], { eps: [-1, 1] }), ArgumentError, /eps\[0\]/],
  ["d below 1", () => new optim.Adafactor([w()], { d: 0.5 }), ArgumentError, /d to be a number of at least 1, got 0.5/],
  [
    "beta2Decay 1",
    () => new optim.Adafactor([w()], { beta2Decay: 1 }),
    ArgumentError,
    /beta2Decay .* at most 0, got 1/,
  ],
  ["no iterations", () => new optim.LBFGS([w()], { maxIter: 0 }), ArgumentError, /maxIter/],
  [
    "another search",
    () => new optim.LBFGS([w()], { lineSearchFn: "wolfe" as never }),
    ArgumentError,
    /"strongWolfe" or null/,
  ],
  [
    "groups of LBFGS",
    () => new optim.LBFGS([{ parameters: [w()] }, { parameters: [w()] }]),
    ArgumentError,
    /one group, got 2/,
  ],
  ["no closure", () => new optim.LBFGS([w()]).step(), ArgumentError, /computes the loss.*got undefined/],
  ["a closure without a loss", () => new optim.LBFGS([w()]).step(() => w()), ArgumentError, /a tensor of one element/],
  [
    "a state of other sizes",
    () => {
      const [one, other] = [w(), w([4])];
      const optimizer = new optim.LBFGS([one]);
      optimizer.step(() => {
        const loss = one.sub(1).square().sum();
        loss.backward();
        return loss;
      });
      new optim.LBFGS([other]).loadStateDict(optimizer.stateDict());
    },
    ArgumentError,
    /tensor direction: expected a vector of 4 elements/,
  ],
  ["eps -1", () => new AdamW([w()], { eps: -1 }), ArgumentError, /eps/],
  ["weightDecay -1", () => new Lion([w()], { weightDecay: -1 }), ArgumentError, /weightDecay/],
  [
    "nesterov without momentum",
    () => new SGD([w()], { nesterov: true }),
    ArgumentError,
    /nesterov requires a momentum/,
  ],
  [
    "a misspelled option",
    () => new AdamW([w()], { weight_decay: 1 } as never),
    ArgumentError,
    /no option "weight_decay"; the options are lr, betas.*; did you mean "weightDecay"\?$/,
  ],
  [
    "a misspelled option of a group",
    () => new AdamW([{ parameters: [w()], wd: 1 } as never]),
    ArgumentError,
    /no option "wd"/,
  ],
  ["lambd -1", () => new optim.ASGD([w()], { lambd: -1 }), ArgumentError, /lambd to be a number of at least 0/],
  ["t0 NaN", () => new optim.ASGD([w()], { t0: NaN }), ArgumentError, /t0 to be a finite number/],
  ["etas [1, 2]", () => new optim.Rprop([w()], { etas: [1, 2] }), ArgumentError, /etas\[0\].*below 1, got 1/],
  ["etas [0.5, 1]", () => new optim.Rprop([w()], { etas: [0.5, 1] }), ArgumentError, /etas\[1\].*above 1, got 1/],
  ["one step size", () => new optim.Rprop([w()], { stepSizes: [1] as never }), ArgumentError, /stepSizes.*two numbers/],
  [
    "two Newton-Schulz coefficients",
    () => new Muon([w()], { newtonSchulzCoefficients: [1, 2] as never }),
    ArgumentError,
    /newtonSchulzCoefficients to be three numbers, such as \[3.4445, -4.775, 2.0315\]/,
  ],
  [
    "an unknown adjustment of the learning rate",
    () => new Muon([w()], { adjustLearningRate: "none" as never }),
    ArgumentError,
    /one of original, matchRmsAdamw, spectralUnclamped, got "none"/,
  ],
  ["no Newton-Schulz steps", () => new Muon([w()], { newtonSchulzSteps: 0 }), ArgumentError, /newtonSchulzSteps/],
  [
    "a group that is not there",
    () => new SGD([w()]).setLearningRate(1, 3),
    ArgumentError,
    /expected group to be an index below 1, got 3/,
  ],
  ["a factor NaN", () => new SGD([w()]).scaleLearningRate(Number.NaN), ArgumentError, /schedule's factor/],
];

function stepWith(lr: number): void {
  const optimizer = new SGD([w()]);
  optimizer.groups[0].lr = lr;
  optimizer.step();
}

const others: readonly Mistake[] = [
  ["maxNorm -1", () => clipGradNorm([w()], -1), ArgumentError, /maxNorm.*got -1/],
  ["maxNorm NaN", () => clipGradNorm([w()], Number.NaN), ArgumentError, /maxNorm.*got NaN/],
  ["normType 0", () => clipGradNorm([w()], 1, { normType: 0 }), ArgumentError, /normType/],
  ["clipValue NaN", () => clipGradValue([w()], Number.NaN), ArgumentError, /clipValue/],
  ["no list", () => clipGradNorm("w" as never, 1), ArgumentError, /a tensor or a list/],
  ["a growth of 1", () => new GradScaler({ growthFactor: 1 }), ArgumentError, /growthFactor/],
  ["a back-off of 1", () => new GradScaler({ backoffFactor: 1 }), ArgumentError, /backoffFactor/],
  ["an update without a step", () => new GradScaler().update(), ArgumentError, /expected a step since the last update/],
  [
    "a warm-up too long",
    () => cosineWithWarmup({ warmup: 10, total: 10 }),
    ArgumentError,
    /below total \(10\), got 10/,
  ],
  ...[0.5, -1, Number.NaN].map(
    (warmup): Mistake => [
      `a warm-up of ${warmup} steps`,
      () => cosineWithWarmup({ warmup, total: 10 }),
      ArgumentError,
      new RegExp(`warmup.*got ${warmup}`),
    ],
  ),
  ["no total", () => linear({ total: 0 }), ArgumentError, /total/],
  [
    "another curve",
    () => oneCycle({ total: 3, anneal: "step" as never }),
    ArgumentError,
    /"cosine" or "linear", got "step"/,
  ],
];

describe.each([
  ["parameters", parameters],
  ["options", options],
  ["clipping, scaling and schedules", others],
])("%s rejects invalid options", (_, mistakes) => {
  test.each(mistakes)("%s is rejected", (_, call, type, message) => {
    expect(call).toThrow(type);
    expect(call).toThrow(message);
  });
});

describe("step rejects invalid gradients", () => {
  test("step rejects a parameter that was disposed of", () => {
    const x = w();
    x.grad = w().detach();
    const optimizer = new AdamW([x]);
    x.dispose();
    expect(() => optimizer.step()).toThrow(/\[AdamW\].*after dispose/);
  });
});

describe("values at a limit are accepted, values beyond it rejected", () => {
  const plateau = (options: object) => new optim.ReduceOnPlateau(new SGD([w()], { lr: 1 }), options);
  test.each<readonly [what: string, accepted: () => unknown, refused: () => unknown]>([
    [
      "warmup is below total",
      () => cosineWithWarmup({ warmup: 9, total: 10 }),
      () => cosineWithWarmup({ warmup: 10, total: 10 }),
    ],
    ["a factor below 1", () => plateau({ factor: 0.999 }), () => plateau({ factor: 1 })],
    ["a factor of 0", () => plateau({ factor: 0 }), () => plateau({ factor: -0.001 })],
    ["a patience of 0", () => plateau({ patience: 0 }), () => plateau({ patience: -1 })],
    ["a cooldown of 0", () => plateau({ cooldown: 0 }), () => plateau({ cooldown: 0.5 })],
  ])("%s is accepted, and a value beyond it rejected", (_, accepted, refused) => {
    expect(accepted).not.toThrow();
    expect(refused).toThrow(ArgumentError);
  });
});

test("no optimizer keeps master weights, or maximizes, unless requested", () => {
  const { ASGD, Adadelta, Adagrad, Adam, Adamax, NAdam, RAdam, RMSprop, Rprop } = optim;
  // TypeScript takes seconds to unite the constructors' types.
  type Constructor = new (parameters: readonly Tensor[], options: object) => { readonly groups: readonly object[] };
  const all: readonly Constructor[] = [
    ASGD,
    Adadelta,
    Adagrad,
    Adam,
    AdamW,
    Adamax,
    NAdam,
    RAdam,
    RMSprop,
    Rprop,
    SGD,
    Lion,
  ];
  for (const Optimizer of all) {
    const [group] = new Optimizer([w()], {}).groups as readonly { masterWeights?: boolean; maximize?: boolean }[];
    expect([Optimizer.name, group.masterWeights ?? false, group.maximize ?? false]).toEqual([
      Optimizer.name,
      false,
      false,
    ]);
  }
});
