/** Metrics of predictions, compared with scikit-learn's, with ties and absent classes. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { ArgumentError, DTypeError, metrics, ShapeError, type Tensor, tensor, zeros } from "../../src/index.ts";

interface Score {
  readonly score: "precision" | "recall" | "f1Score";
  readonly options: metrics.ScoreOptions;
  readonly value: number | number[];
}
interface Fixture {
  readonly classification: readonly {
    readonly classes: number;
    readonly target: number[];
    readonly predicted: number[];
    readonly accuracy: number;
    readonly confusion: number[][];
    readonly scores: readonly Score[];
  }[];
  readonly binaryAreas: readonly {
    readonly target: number[];
    readonly scores: number[];
    readonly area: number | "nan";
  }[];
  readonly areasOfClasses: readonly {
    readonly target: number[];
    readonly scores: number[][];
    readonly areas: Readonly<Record<"macro" | "weighted", number>>;
  }[];
  readonly perplexities: readonly {
    readonly target: number[];
    readonly logits: number[][];
    readonly perplexity: number;
  }[];
}

const path = join(packageRoot, "test", "fixtures", "metrics", "scores.json");
const fixture = JSON.parse(readFileSync(path, "utf8")) as Fixture;

/** Class numbers in each dtype that can hold them. */
const dtypes = ["int64", "int32", "uint8"] as const;
const classNumbers = (values: readonly number[], at = 0): Tensor => tensor([...values], { dtype: dtypes[at % 3] });
/** Scores for each row, the largest for its predicted class. */
const scoresOf = (predicted: readonly number[], classes: number): Tensor =>
  tensor(predicted.map((own) => Array.from({ length: classes }, (_, at) => (at === own ? 2 : -at))));

/** Both sum in float64, in different orders. */
function expectClose(found: number | number[], expected: number | number[]): void {
  const [own, others] = [[found].flat(), [expected].flat()];
  expect(own.length).toBe(others.length);
  for (const [at, value] of own.entries()) expect(value).toBeCloseTo(others[at], 13);
}

describe("metrics match scikit-learn", () => {
  const cases = fixture.classification.map((own, at) => ({ ...own, at }));

  test.each(cases)(
    "scores match scikit-learn: case $at",
    ({ classes, target, predicted, accuracy, confusion, scores, at }) => {
      const own = classNumbers(target, at);
      for (const given of [classNumbers(predicted, at + 1), scoresOf(predicted, classes)]) {
        expect(metrics.accuracy(given, own)).toBeCloseTo(accuracy, 13);
        const counts = metrics.confusionMatrix(given, own, { classes });
        expect([counts.dtype, counts.toArray() as unknown]).toEqual(["int64", confusion.map((row) => row.map(BigInt))]);
        for (const { score, options, value } of scores) {
          expectClose(metrics[score](given, own, options), value);
        }
      }
    },
  );

  test.each(fixture.binaryAreas.map((own, at) => ({ ...own, at })))("ROC AUC matches scikit-learn: case $at", (own) => {
    const found = metrics.rocAuc(
      tensor(own.scores, { dtype: "float64" }),
      tensor(own.target.map((label) => label === 1)),
    );
    if (own.area === "nan") expect(found).toBeNaN();
    else expect(found).toBeCloseTo(own.area, 13);
  });

  test.each(fixture.areasOfClasses.map((own, at) => ({ ...own, at })))(
    "ROC AUC of several classes matches scikit-learn: case $at",
    (own) => {
      const scores = tensor(own.scores, { dtype: "float64" });
      for (const average of ["macro", "weighted"] as const)
        expect(metrics.rocAuc(scores, classNumbers(own.target), { average })).toBeCloseTo(own.areas[average], 13);
    },
  );

  test.each(fixture.perplexities.map((own, at) => ({ ...own, at })))(
    "perplexity matches scikit-learn: case $at",
    (own) => {
      const found = metrics.perplexity(tensor(own.logits, { dtype: "float64" }), classNumbers(own.target));
      expect(found / own.perplexity).toBeCloseTo(1, 10);
    },
  );
});

describe("invalid arguments are errors", () => {
  const labels = tensor([0n, 1n, 2n]);
  test.each([
    ["other shapes", () => metrics.accuracy(tensor([0n]), labels), ShapeError, "shapesDiffer"],
    ["scores in place of classes", () => metrics.accuracy(zeros([3]), labels), DTypeError, "notClasses"],
    ["negative numbers", () => metrics.confusionMatrix(labels, tensor([0n, -1n, 0n])), ArgumentError, "outOfRange"],
    ["a class beyond", () => metrics.confusionMatrix(labels, labels, { classes: 2 }), ArgumentError, "outOfRange"],
    ["three classes in a binary score", () => metrics.f1Score(labels, labels), ArgumentError, "notBinary"],
    [
      "nothing",
      () => metrics.precision(zeros([0], { dtype: "bool" }), zeros([0], { dtype: "bool" })),
      ArgumentError,
      "noItems",
    ],
    ["NaN", () => metrics.rocAuc(tensor([Number.NaN, 1]), tensor([0n, 1n])), ArgumentError, "notANumber"],
    ["classes as scores", () => metrics.rocAuc(labels, labels), DTypeError, "notScores"],
  ] as const)("%s is an error", (_name, call, Class, code) => {
    expect(call).toThrow(Class);
    expect(call).toThrow(expect.objectContaining({ code }));
  });
});

test("perplexity skips targets to ignore", () => {
  const logits = tensor([
    [1, 2],
    [3, 0],
    [0, 5],
  ]);
  const [all, some] = [tensor([0n, 7n, 1n]), tensor([0n, 1n])];
  const kept = tensor([
    [1, 2],
    [0, 5],
  ]);
  expect(metrics.perplexity(logits, all, { ignoreIndex: 7 })).toBeCloseTo(metrics.perplexity(kept, some), 6);
});
