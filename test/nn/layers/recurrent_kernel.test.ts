/** Recurrent layers without gradients, of drawn sizes, against their formulas in float64. */
import { describe, expect, test } from "bun:test";
import {
  codepaths,
  Generator,
  nn,
  noGrad,
  randn,
  resetCodepaths,
  type Tensor,
  withBackend,
} from "../../../src/index.ts";
import { Random } from "../../ops/samples.ts";
import { repeats } from "../../support/repeats.ts";

type Rows = number[][];
const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));
const dot = (a: readonly number[], b: readonly number[]): number => a.reduce((sum, x, at) => sum + x * b[at], 0);
const affine = (weight: Rows, x: readonly number[], bias: readonly number[]): number[] =>
  weight.map((row, at) => dot(row, x) + (bias[at] ?? 0));

interface State {
  readonly hidden: number[];
  readonly cell: number[];
}

/** One step of one row, from the products of its input (p) and of its state (s), each with its bias. */
const steps: Readonly<Record<"LSTM" | "GRU" | "RNN", (p: number[], s: number[], state: State) => State>> = {
  LSTM(p, s, { hidden, cell }) {
    const gate = (index: number, at: number) => p[index * hidden.length + at] + s[index * hidden.length + at];
    const next = cell.map((c, at) => sigmoid(gate(1, at)) * c + sigmoid(gate(0, at)) * Math.tanh(gate(2, at)));
    return { hidden: next.map((c, at) => sigmoid(gate(3, at)) * Math.tanh(c)), cell: next };
  },
  GRU(p, s, { hidden }) {
    const size = hidden.length;
    const next = hidden.map((h, at) => {
      const [reset, update] = [0, size].map((first) => sigmoid(p[first + at] + s[first + at])) as [number, number];
      const candidate = Math.tanh(p[2 * size + at] + reset * s[2 * size + at]);
      return (1 - update) * candidate + update * h;
    });
    return { hidden: next, cell: [] };
  },
  RNN: (p, s) => ({ hidden: p.map((x, at) => Math.tanh(x + s[at])), cell: [] }),
};

const listed = (x: Tensor): Rows => x.toArray() as Rows;

/** The states of all steps of one direction, by step and row. */
function direction(
  kind: keyof typeof steps,
  weights: ReadonlyMap<string, Tensor>,
  suffix: string,
  x: Rows[],
  at: State[],
) {
  const [wi, wh] = ["weight_ih", "weight_hh"].map((name) => listed(weights.get(name + suffix)!)) as [Rows, Rows];
  const [bi, bh] = ["bias_ih", "bias_hh"].map((name) => (weights.get(name + suffix)?.toArray() ?? []) as number[]);
  let states = at;
  const outputs = x.map(() => [] as Rows);
  const order = [...x.keys()];
  for (const step of suffix.endsWith("reverse") ? order.reverse() : order) {
    states = states.map((state, row) => steps[kind](affine(wi, x[step][row], bi), affine(wh, state.hidden, bh), state));
    outputs[step] = states.map(({ hidden }) => hidden);
  }
  return { outputs, states };
}

function check(random: Random): void {
  const kind = (["LSTM", "GRU", "RNN"] as const)[random.integer(0, 2)];
  const dtype = (["float32", "float64"] as const)[random.integer(0, 1)];
  const [length, batch, inputs, size] = [6, 40, 20, 40].map((most) => Math.floor(most ** random.next())) as number[];
  const generator = new Generator(random.integer(0, 1000));
  const draw = (...shape: number[]) => randn(shape, { dtype, generator });
  const [bidirectional, bias, batchFirst] = [random.next() < 0.5, random.next() < 0.7, random.next() < 0.5];
  const layer = new nn[kind](inputs, size, { dtype, generator, bidirectional, bias, batchFirst });
  const x = draw(length, batch, inputs);
  const count = bidirectional ? 2 : 1;
  const initial = {
    hidden: draw(count, batch, size),
    ...(kind === "LSTM" ? { cell: draw(count, batch, size) } : {}),
  };
  const run = noGrad(() => layer.forward(batchFirst ? x.transpose(0, 1) : x, initial));
  const weights = new Map(layer.namedParameters());
  const name = `${kind} ${dtype} ${x.describe()} to ${size}, ${count} directions`;
  const runs = ["_l0", "_l0_reverse"].slice(0, count).map((suffix, way) => {
    const [hidden, cell] = [initial.hidden, initial.cell].map((own) => own && listed(own.select(0, way)));
    const states = hidden!.map((row, at) => ({ hidden: row, cell: cell?.[at] ?? [] }));
    return direction(kind, weights, suffix, x.toArray() as Rows[], states);
  });
  const wanted = runs[0].outputs.map((rows, step) =>
    rows.map((_, row) => runs.flatMap(({ outputs }) => outputs[step][row])),
  );
  const close = (own: Tensor, other: unknown) => {
    const [a, b] = [own.toArray(), other].map((each) => (each as Rows[]).flat(2)) as [number[], number[]];
    const off = Math.max(...a.map((value, at) => Math.abs(value - b[at])));
    // States are at most about 4, and errors do not grow from step to step by more than the weights' norm.
    expect([name, off < (dtype === "float32" ? 2e-5 : 1e-13)]).toEqual([name, true]);
  };
  close(batchFirst ? run.output.transpose(0, 1) : run.output, wanted);
  close(
    run.hidden,
    runs.map(({ states }) => states.map(({ hidden }) => hidden)),
  );
  if ("cell" in run)
    close(
      run.cell as Tensor,
      runs.map(({ states }) => states.map(({ cell }) => cell)),
    );
}

describe.each([...Array(4).keys()])("drawn recurrent layers equal single operations, seed %d", (seed) => {
  test("layers equal their formulas", () => {
    const random = new Random(seed);
    withBackend("cpu", () => {
      for (let count = 0; count < repeats({ usual: 12, all: 80 }); count++) check(random);
    });
  });
});

test("cells are layers of one step, and one call computes all steps", () => {
  withBackend("cpu", () =>
    noGrad(() => {
      const [layer, cell] = [new nn.LSTM(5, 7), new nn.LSTMCell(5, 7)];
      cell.loadStateDict(
        Object.fromEntries(Object.entries(layer.stateDict()).map(([name, x]) => [name.replace("_l0", ""), x])),
      );
      const x = randn([3, 4, 5]);
      resetCodepaths();
      const whole = layer.forward(x);
      const calls = codepaths().filter(({ operation }) => operation === "recurrent");
      expect(calls.map((each) => each.calls)).toEqual([1]);
      let state = cell.forward(x.select(0, 0));
      for (const step of [1, 2]) state = cell.forward(x.select(0, step), state);
      for (const name of ["hidden", "cell"] as const)
        for (const [at, value] of (state[name].toArray() as Rows).flat().entries())
          expect(value).toBeCloseTo((whole[name].toArray() as Rows[]).flat(2)[at], 5);
    }),
  );
});
