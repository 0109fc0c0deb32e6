/**
 * Gradients of recurrent layers through the kernel of all steps: drawn sizes, kinds, directions and states, compared
 * with back-propagation through composed steps on the reference backend, and with finite differences.
 */
import { expect, test } from "bun:test";
import {
  codepaths,
  enableGrad,
  grad,
  gradcheck,
  manualSeed,
  nn,
  randn,
  sum,
  type Tensor,
  withBackend,
} from "../../../src/index.ts";
import { mul } from "../../../src/ops/elementwise/arithmetic.ts";
import { Random } from "../../ops/samples.ts";
import { repeats } from "../../support/repeats.ts";

const random = new Random(5309);
const sized = (most: number): number => Math.round((most + 0.49) ** random.next());
const pick = <T>(choices: readonly T[]): T => choices[random.integer(0, choices.length - 1)]!;

type Layer = nn.LSTM | nn.GRU | nn.RNN;
const kinds = ["LSTM", "GRU", "tanh", "relu"] as const;

function made(kind: (typeof kinds)[number], inputs: number, size: number, options: object): Layer {
  if (kind === "LSTM") return new nn.LSTM(inputs, size, options);
  return kind === "GRU"
    ? new nn.GRU(inputs, size, options)
    : new nn.RNN(inputs, size, { ...options, nonlinearity: kind });
}

interface Operands {
  readonly x: Tensor;
  readonly hidden: Tensor;
  readonly cell: Tensor | undefined;
}

/** The output, and the last states. */
function results(layer: Layer, { x, hidden, cell }: Operands): Tensor[] {
  const run = cell ? (layer as nn.LSTM).forward(x, { hidden, cell }) : (layer as nn.GRU).forward(x, { hidden });
  return Object.values(run) as Tensor[];
}

const numbers = (tensors: readonly Tensor[]): number[] =>
  tensors.flatMap((each) => Array.from(each.detach().dataSync() as Float64Array));

test("gradients equal those of composed steps", () => {
  for (let round = 0; round < repeats({ usual: 24, all: 240 }); round++) {
    const [kind, steps, batch, inputs, size] = [kinds[round % 4], sized(9), sized(20), sized(6), sized(20)];
    const bidirectional = random.next() < 0.4;
    const layers = random.integer(1, 2);
    manualSeed(round);
    const options = { bidirectional, numLayers: layers, bias: random.next() < 0.7, dtype: "float64" } as const;
    const [states, used] = [layers * (bidirectional ? 2 : 1), pick(["output", "states", "both"] as const)];
    const gradients = (backend: "cpu" | "reference"): number[] =>
      withBackend(backend, () => {
        manualSeed(round);
        const layer = made(kind, inputs, size, options);
        const given = () => randn([states, batch, size], { dtype: "float64" });
        const operands = {
          x: randn([steps, batch, inputs], { dtype: "float64" }),
          hidden: given(),
          cell: kind === "LSTM" ? given() : undefined,
        };
        const variables = Object.values(operands).filter((each) => each !== undefined);
        for (const each of variables) each.requiresGrad = true;
        const all = results(layer, operands);
        const parts = used === "output" ? all.slice(0, 1) : used === "states" ? all.slice(1) : all;
        const scales = parts.map((part) => randn(part.shape, { dtype: "float64" }));
        return numbers(grad(parts, [...variables, ...layer.parameters()], { gradOutputs: scales }));
      });
    const [found, expected] = [gradients("cpu"), gradients("reference")];
    expect(found).toHaveLength(expected.length);
    const off = Math.max(...found.map((value, at) => Math.abs(value - expected[at]) / (1 + Math.abs(expected[at]))));
    expect([round, kind, off < 1e-11]).toEqual([round, kind, true]);
  }
});

test("a step of training runs one native call for each pass of a layer", () =>
  withBackend("cpu", () => {
    const calls = (name: string): number =>
      codepaths().reduce((total, path) => total + (path.operation === name ? path.calls : 0), 0);
    const layer = new nn.LSTM(3, 5);
    const before = [calls("recurrent"), calls("recurrentGradient"), calls("addmm")];
    const [output] = results(layer, { x: randn([7, 2, 3]), hidden: randn([1, 2, 5]), cell: randn([1, 2, 5]) });
    sum(output).backward();
    const after = [calls("recurrent"), calls("recurrentGradient"), calls("addmm")];
    expect(after.map((count, at) => count - before[at])).toEqual([1, 1, 1]); // addmm: the gradient of the weight
  }));

test.each(kinds.filter((kind) => kind !== "relu"))("gradients of gradients of %s by finite differences", (kind) =>
  withBackend("cpu", () => {
    manualSeed(4);
    const layer = made(kind, 2, 3, { dtype: "float64" });
    const [x, hidden] = [randn([3, 2, 2], { dtype: "float64" }), randn([1, 2, 3], { dtype: "float64" })];
    const cell = kind === "LSTM" ? randn([1, 2, 3], { dtype: "float64" }) : undefined;
    const ofInput = (given: Tensor): Tensor =>
      enableGrad(() => {
        const input = given.requiresGrad ? given : given.detach();
        input.requiresGrad = true;
        const [output] = results(layer, { x: input, hidden, cell });
        return grad([sum(mul(output, output))], [input], { createGraph: true })[0];
      });
    x.requiresGrad = true;
    expect(() => gradcheck(ofInput, [x])).not.toThrow();
  }),
);
