import { describe, expect, test } from "bun:test";
import { type FloatDType, nn, relu, type Tensor, zeros } from "orchard-metal";

/** A hidden layer that is called three times, and a branch that is never called. */
class Recurrent extends nn.Module<[x: Tensor<FloatDType>], Tensor> {
  readonly norm = new nn.LayerNorm(4);
  readonly cell = new nn.Linear(4, 4);
  readonly activation = new nn.ReLU();
  readonly unused = new nn.Linear(1, 1, { bias: false });
  readonly heads = new nn.ModuleList([new nn.Linear(4, 2), new nn.Linear(4, 3)]);
  override forward(x: Tensor<FloatDType>): Tensor {
    let state: Tensor<FloatDType> = this.norm.forward(x);
    for (let step = 0; step < 3; step++) {
      state = this.cell.forward(state);
      this.activation.forward(state);
    }
    for (const head of this.heads) (head as nn.Linear).forward(state);
    return relu(state);
  }
}

describe("summary lists the layers of a model", () => {
  test("the summary has the shapes of results by layer", () => {
    expect(nn.summary(new Recurrent(), zeros([5, 4]))).toBe(
      `
layer       kind       result      state                    numbers  bytes
──────────  ─────────  ──────────  ───────────────────────  ───────  ─────
(itself)    Recurrent  [5, 4]                                     0    0 B
norm        LayerNorm  [5, 4]      weight [4], bias [4]           8   32 B
cell        Linear     3 × [5, 4]  weight [4, 4], bias [4]       20   80 B
activation  ReLU       3 × [5, 4]                                 0    0 B
unused      Linear                 weight [1, 1]                  1    4 B
heads.0     Linear     [5, 2]      weight [2, 4], bias [2]       10   40 B
heads.1     Linear     [5, 3]      weight [3, 4], bias [3]       15   60 B
──────────  ─────────  ──────────  ───────────────────────  ───────  ─────
54 parameters, 216 B
`.trim(),
    );
  });

  test("the summary without inputs equals model.summary()", () => {
    const model = new Recurrent();
    expect(nn.summary(model)).toBe(model.summary());
  });

  test("modes and statistics are restored, and hooks removed", () => {
    const norm = new nn.BatchNorm1d(4);
    const cell = new nn.Linear(4, 4).eval();
    const model = new nn.Sequential(norm, cell);
    const before = norm.stateDict()["running_mean"].clone();
    nn.summary(model, zeros([5, 4]).add(3));
    expect([model.training, norm.training, cell.training]).toEqual([true, true, false]);
    expect(norm.stateDict()["running_mean"]).toEqual(before);
    expect(Object.hasOwn(cell, "forward")).toBe(false);
  });

  test("an error of forward is passed on, with modes and hooks restored", () => {
    const model = new Recurrent();
    expect(() => nn.summary(model, zeros([5, 3]))).toThrow("[layerNorm]");
    expect(model.training).toBe(true);
    expect(Object.hasOwn(model, "forward")).toBe(false);
  });

  test("the summary lists all results of a module that returns several", () => {
    const table = nn.summary(new nn.LSTM(3, 2), zeros([4, 1, 3]));
    const [, first = "", second = ""] = table.split("\n").slice(1);
    expect(first).toContain("[4, 1, 2], [1, 1, 2],");
    expect(second).toContain("[1, 1, 2]");
  });

  test("the summary rejects values other than modules", () => {
    expect(() => nn.summary(3 as never)).toThrow("expected model to be a module, got 3");
  });
});
