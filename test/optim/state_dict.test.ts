/** Saving and loading optimizers: they resume bit-identically. */
import { describe, expect, test } from "bun:test";
import { optim, type Tensor, tensor } from "../../src/index.ts";
import { bitsOf, draw, make, type OptimizerName, on, parameterOf, tested } from "./run.ts";

const shapes = [[3, 5], [7], [2, 2]];
const dtypes = ["float32", "bfloat16", "float16"] as const;

const parametersOf = (dtype: (typeof dtypes)[number]): Tensor[] =>
  shapes.map((shape, at) =>
    parameterOf(
      draw(
        shape.reduce((product, size) => product * size, 1),
        at,
        dtype,
      ),
      dtype,
      shape,
    ),
  );

/** Sets every parameter's gradient for a step. The last has none in the first three. */
function prepare(parameters: readonly Tensor[], step: number): void {
  for (const [at, parameter] of parameters.entries()) {
    const isLeftOut = at === parameters.length - 1 && step < 3;
    const values = Float64Array.from(draw(parameter.size, 100 * step + at));
    parameter.grad = isLeftOut ? null : tensor(values, { dtype: "float32", shape: parameter.shape });
  }
}

function run(optimizer: ReturnType<typeof make>, parameters: readonly Tensor[], from: number, to: number): void {
  for (let step = from; step < to; step++) {
    prepare(parameters, step);
    optimizer.step();
  }
}

const cases: readonly (readonly [OptimizerName, object])[] = [
  ["AdamW", { lr: 0.01, amsgrad: true, masterWeights: true }],
  ["Adam", { lr: 0.01, weightDecay: 0.1 }],
  ["SGD", { lr: 0.1, momentum: 0.9, dampening: 0.5, masterWeights: true }],
  ["SGD", { lr: 0.1 }],
  ["Lion", { lr: 0.01, masterWeights: true }],
  ["RMSprop", { lr: 0.01, momentum: 0.9, centered: true, masterWeights: true }],
  ["Adagrad", { lr: 0.1, lrDecay: 0.5, initialAccumulatorValue: 0.25 }],
  ["Adadelta", { weightDecay: 0.1 }],
  ["Adamax", { lr: 0.01, masterWeights: true }],
  ["NAdam", { lr: 0.01, momentumDecay: 0.1 }],
  ["RAdam", { lr: 0.01, betas: [0.8, 0.9], masterWeights: true }],
  ["ASGD", { lr: 0.1, lambd: 0.1, t0: 1, weightDecay: 0.1, masterWeights: true }],
  ["Rprop", { lr: 0.1, etas: [0.25, 1.5], stepSizes: [1e-3, 1], masterWeights: true }],
  ["Adafactor", { lr: 0.1, d: 2, weightDecay: 0.1, masterWeights: true }],
];

/** A JSON file and a file of tensors restore it. */
function throughFiles({ tensors, ...rest }: optim.OptimizerStateDict): optim.OptimizerStateDict {
  const copies = Object.entries(tensors).map(([name, x]) => [
    name,
    tensor(x.dataSync(), { dtype: x.dtype, shape: x.shape }),
  ]);
  return { ...(JSON.parse(JSON.stringify(rest)) as typeof rest), tensors: Object.fromEntries(copies) };
}

describe.each(tested)("a resumed optimizer on %s continues exactly", (backend) => {
  test.each(cases)("%s %j resumes with the bits of an uninterrupted run", (name, options) => {
    on(backend, () => {
      for (const dtype of dtypes) {
        const whole = parametersOf(dtype);
        const straight = make(name, whole, options);
        run(straight, whole, 0, 8);

        const first = parametersOf(dtype);
        const before = make(name, first, options);
        run(before, first, 0, 5);
        const saved = throughFiles(before.stateDict());
        const second = first.map((x) => parameterOf(Array.from(x.dataSync() as Float32Array), dtype, [...x.shape]));
        const after = make(name, second, { lr: 0.5 });
        after.loadStateDict(saved);
        run(after, second, 5, 8);
        expect(bitsOf(second)).toBe(bitsOf(whole));
        expect(bitsOf(Object.values(after.stateDict().tensors))).toBe(
          bitsOf(Object.values(straight.stateDict().tensors)),
        );
      }
    });
  });
});

const { AdamW, SGD, Muon } = optim;
const weight = () => parameterOf([1, 2, 3, 4, 5, 6], "float32", [2, 3]);

describe("stateDict names the parameters", () => {
  test("stateDict names parameters by number, or by their given names", () => {
    const [w, b] = [weight(), parameterOf([1, 2])];
    for (const x of [w, b]) x.grad = tensor(new Float32Array(x.size), { shape: x.shape });
    const numbered = new AdamW([w, b]);
    numbered.step();
    expect(Object.keys(numbered.stateDict().tensors)).toEqual([
      "0.firstMoment",
      "0.secondMoment",
      "1.firstMoment",
      "1.secondMoment",
    ]);
    const named = new SGD(
      new Map([
        ["layer.weight", w],
        ["layer.bias", b],
      ]),
      { momentum: 0.9 },
    );
    named.step();
    const { groups, steps, tensors, optimizer } = named.stateDict();
    expect(Object.keys(tensors)).toEqual(["layer.weight.momentum", "layer.bias.momentum"]);
    expect(steps).toEqual({ "layer.weight": 1, "layer.bias": 1 });
    expect(groups.map(({ parameters }) => parameters)).toEqual([["layer.weight", "layer.bias"]]);
    expect(optimizer).toBe("SGD");
    expect(tensors["layer.weight.momentum"].shape).toEqual([2, 3]);
  });

  test("loadStateDict loads options of groups, and learning rates of a schedule", () => {
    const [w, b] = [weight(), parameterOf([1, 2])];
    const groups = () => [
      { parameters: [w], weightDecay: 0 },
      { parameters: [b], lr: 0.5 },
    ];
    const own = new AdamW(groups(), { betas: [0.8, 0.9] });
    own.scaleLearningRate(0.25);
    const other = new AdamW(groups().map(({ parameters }) => ({ parameters })));
    other.loadStateDict(own.stateDict());
    expect(
      other.groups.map(({ lr, initialLr, weightDecay, betas }) => ({ lr, initialLr, weightDecay, betas })),
    ).toEqual([
      { lr: 2.5e-4, initialLr: 1e-3, weightDecay: 0, betas: [0.8, 0.9] },
      { lr: 0.125, initialLr: 0.5, weightDecay: 0.01, betas: [0.8, 0.9] },
    ]);
  });

  test("an optimizer can load its state", () => {
    const w = weight();
    w.grad = weight().detach();
    const own = new AdamW([w]);
    own.step();
    const before = bitsOf(Object.values(own.stateDict().tensors));
    own.loadStateDict(own.stateDict());
    expect(bitsOf(Object.values(own.stateDict().tensors))).toBe(before);
  });

  const stepped = (x: Tensor): optim.OptimizerStateDict => {
    x.grad = tensor(new Float32Array(x.size), { shape: x.shape });
    const optimizer = new AdamW([x]);
    optimizer.step();
    return optimizer.stateDict();
  };
  const good = () => stepped(weight());
  const wrong: readonly (readonly [string, () => optim.OptimizerStateDict, RegExp])[] = [
    ["of another optimizer", () => new Muon([weight()]).stateDict(), /expected the state of AdamW, got "Muon"/],
    ["with another number of groups", () => ({ ...good(), groups: [] }), /expected 1 groups, got 0/],
    [
      "with a parameter more",
      () => stepped(weight()) && new AdamW([weight(), weight()]).stateDict(),
      /unexpected parameter 1/,
    ],
    ["without steps", () => ({ ...good(), steps: {} }), /parameter 0: expected a number of steps, got undefined/],
    [
      "without a tensor",
      () => ({ ...good(), tensors: {} }),
      /missing tensor 0.firstMoment[\s\S]*missing tensor 0.secondMoment/,
    ],
    [
      "of another shape",
      () => stepped(parameterOf([1, 2, 3])),
      /0.firstMoment: expected float32\[2, 3\], got float32\[3\]/,
    ],
    [
      "with a tensor more",
      () => ({ ...good(), tensors: { ...good().tensors, "0.momentum": weight() } }),
      /unexpected tensor 0.momentum/,
    ],
  ];
  test.each(wrong)("a state %s is rejected, and nothing changes", (_, state, message) => {
    const w = weight();
    const optimizer = new AdamW([w]);
    w.grad = weight().detach();
    optimizer.step();
    const before = bitsOf(Object.values(optimizer.stateDict().tensors));
    expect(() => optimizer.loadStateDict(state())).toThrow(message);
    expect(bitsOf(Object.values(optimizer.stateDict().tensors))).toBe(before);
  });
});
