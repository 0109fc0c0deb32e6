/** Compares the loss of detectors with `transformers`: scripts/fixtures/models/detection_losses.py. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../../src/core/paths.ts";
import { backward, mul, nn, noGrad, sigmoid, type Tensor, tensor } from "../../../src/index.ts";
import { assign } from "../../../src/nn/tasks/assignment.ts";
import { Random } from "../../ops/samples.ts";
import { seed } from "../../support/some.ts";
import { errorOf, weight } from "../models/weights.ts";

interface Case {
  readonly shape: readonly [number, number, number];
  readonly targets: readonly nn.DetectionTarget[];
  readonly options: nn.DetectionLossOptions;
  readonly loss: number;
  readonly gradients: { readonly logits: number[]; readonly boxes: number[] };
}
const casesOf = (name: string): readonly Case[] =>
  JSON.parse(readFileSync(join(packageRoot, "test", "fixtures", "vision", `${name}.json`), "utf8"));
const leaf = (x: Tensor): Tensor => {
  x.requiresGrad = true;
  return x;
};

const drawn = (
  [
    ["losses", "", nn.detectionLoss],
    ["focal_losses", "focal.", nn.focalDetectionLoss],
  ] as const
).flatMap(([name, prefix, loss]) =>
  casesOf(name).map((own, at) => [`${loss.name} ${at}`, loss, `${prefix}%.${at}`, own] as const),
);

test.each(drawn)(
  "loss and gradients of %s equal those of transformers",
  (_, lossOf, key, { shape, targets, options, loss, gradients }) => {
    const [batch, queries] = shape;
    const drawnWeight = (name: string, sizes: readonly number[]) =>
      mul(weight(key.replace("%", name), sizes), 4) as Tensor;
    const logits = leaf(noGrad(() => drawnWeight("logits", shape)));
    const boxes = leaf(noGrad(() => sigmoid(drawnWeight("boxes", [batch, queries, 4])) as Tensor));
    const got = lossOf({ logits, boxes }, targets, options);
    expect(got.item()).toBeCloseTo(loss, 4);
    backward(got);
    expect(errorOf(logits.grad!, tensor(gradients.logits, { shape: [...shape] }))).toBeLessThan(1e-5);
    expect(errorOf(boxes.grad!, tensor(gradients.boxes, { shape: [batch, queries, 4] }))).toBeLessThan(1e-5);
  },
);

/** Returns the minimal sum of costs by trying all assignments. */
function leastOf(costs: readonly (readonly number[])[], used: ReadonlySet<number> = new Set()): number {
  const row = costs[used.size];
  if (!row) return 0;
  const sums = row.map((cost, column) =>
    used.has(column) ? Number.POSITIVE_INFINITY : cost + leastOf(costs, new Set([...used, column])),
  );
  return Math.min(...sums);
}

test("assignments have the minimal cost", () => {
  const random = new Random(seed);
  for (let round = 0; round < 60; round++) {
    const rows = random.integer(1, 5);
    const columns = random.integer(rows, 6);
    // whole numbers, so that there are ties
    const costs = Array.from({ length: rows }, () => Array.from({ length: columns }, () => random.integer(-4, 4)));
    const found = assign(costs.flat(), rows, columns);
    expect(new Set(found).size).toBe(rows);
    expect(found.reduce((sum, column, row) => sum + costs[row][column], 0)).toBe(leastOf(costs));
  }
});

test("invalid targets are rejected", () => {
  const detections = { logits: weight("a", [1, 2, 4]), boxes: weight("b", [1, 2, 4]) };
  const coded = (code: string) => expect.objectContaining({ code });
  const box = [0.5, 0.5, 0.1, 0.1] as const;
  const call = (targets: readonly nn.DetectionTarget[]) => () => nn.detectionLoss(detections, targets);
  expect(call([])).toThrow(coded("wrongShape"));
  expect(call([{ labels: [3], boxes: [box] }])).toThrow(coded("invalidLabel"));
  expect(call([{ labels: [0, 1, 2], boxes: [box, box, box] }])).toThrow(coded("tooManyObjects"));
  const focal = (label: number) => () => nn.focalDetectionLoss(detections, [{ labels: [label], boxes: [box] }]);
  expect(focal(4)).toThrow(coded("invalidLabel"));
  expect(focal(3)).not.toThrow();
  expect(call([{ labels: [0], boxes: [] }])).toThrow("expected targets to be a list with the labels and boxes");
});
