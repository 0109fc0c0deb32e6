/** The cases that `bun run bench sweep` draws are reproducible and valid, cover the library, and run. */
import { describe, expect, test } from "bun:test";
import { type Argument, baseShape, type Case, sizeOf } from "../../bench/support/sweep/case.ts";
import { drawCase, families } from "../../bench/support/sweep/cases.ts";
import { Draw, MOST_ELEMENTS } from "../../bench/support/sweep/draw.ts";
import { caseOf, type Family } from "../../bench/support/sweep/family.ts";
import { drawBase, view } from "../../bench/support/sweep/operands.ts";
import { prepare } from "../../bench/support/sweep/ours.ts";
import { fft, linalg, manualSeed, nn, optim, signal } from "../../src/index.ts";
import { operationNames } from "../ops/calls.ts";

const drawings = Object.entries(families).flatMap(([family, [members]]) =>
  Object.entries(members as Family).map(([name, drawing]) => ({ family, name, drawing })),
);

/** Draws of the same kinds of cases, all of them small. */
class SmallDraw extends Draw {
  override size(low: number, high: number): number {
    return super.size(low, Math.max(low, Math.min(high, 64)));
  }
}

const references = (value: Argument): number[] => {
  if (typeof value !== "object" || value === null) return [];
  return "operand" in value ? [value.operand] : value.flatMap(references);
};

function checkSound({ operands, ours, theirs, gradients }: Case): void {
  for (const operand of operands) {
    const base = baseShape(operand);
    expect(sizeOf(base)).toBeLessThanOrEqual(2 * MOST_ELEMENTS);
    expect([...operand.shape, ...base].every((size) => Number.isInteger(size) && size >= 0)).toBe(true);
  }
  const used = [ours, theirs].flatMap(({ args, options }) => [...args, ...Object.values(options)].flatMap(references));
  for (const position of [...used, ...gradients]) expect(position).toBeLessThan(operands.length);
  for (const position of gradients) expect(operands[position].dtype).toContain("float");
}

test("a seed and a number determine the case, and neighboring numbers give different cases", () => {
  const texts = new Set<string>();
  for (let number = 0; number < 300; number++) {
    const text = JSON.stringify(drawCase(5, number));
    expect(JSON.stringify(drawCase(5, number))).toBe(text);
    texts.add(text);
  }
  expect(texts.size).toBeGreaterThan(290);
  expect(JSON.stringify(drawCase(6, 0))).not.toBe(JSON.stringify(drawCase(5, 0)));
});

test("4,000 drawn cases have compatible operands, and use only operands that they have", () => {
  for (let number = 0; number < 4000; number++) checkSound(drawCase(11, number));
});

test("1,000 small cases have compatible operands of at most 8 elements along an axis that a size bounds", () => {
  const sizes = Array.from({ length: 1000 }, (_, number) => {
    const each = drawCase(11, number, { small: true });
    checkSound(each);
    return Math.max(0, ...each.operands.map(({ shape }) => sizeOf(shape)));
  }).sort((a, b) => a - b);
  expect(sizes[500]).toBeLessThanOrEqual(64);
  expect(sizes[900]).toBeLessThanOrEqual(4096);
});

test("arguments select operations and families by name", () => {
  for (let number = 0; number < 100; number++) {
    expect(drawCase(1, number, { words: ["softmax"] }).ours.name.toLowerCase()).toContain("softmax");
    expect(drawCase(1, number, { words: ["linalg"] }).family).toBe("linalg");
  }
  expect(() => drawCase(1, 0, { words: ["nonsense"] })).toThrow("no operation's or family's name contains nonsense");
});

const complexFunctions: ReadonlySet<string> = new Set(
  "angle complex conj imag polar real sgn viewAsComplex viewAsReal".split(" "),
);

describe("every function of the library is drawn, with these exceptions", () => {
  const drawn = new Set(drawings.map(({ name }) => name));
  const missing = (space: object, prefix = ""): string[] =>
    Object.entries(space).flatMap(([name, value]) =>
      typeof value === "function" && !drawn.has(prefix + name) ? [name] : [],
    );

  test("exceptions are operations that PyTorch lacks, and those that read JavaScript's arrays", () => {
    const others: string[] = operationNames.filter((name) => !drawn.has(name));
    const ofComplex = others.filter((name) => complexFunctions.has(name));
    expect(new Set(ofComplex)).toEqual(new Set(complexFunctions)); // no operand of the sweep is complex
    expect(others.filter((name) => !complexFunctions.has(name)).sort()).toEqual([
      "fromArray",
      "nanmax",
      "nanmin",
      "normal",
      "rope",
      "tensor",
      "uniform",
    ]);
  });

  test("exceptions are functions of linear algebra that continue with another function's factors", () => {
    expect(missing(linalg, "linalg.").sort()).toEqual([
      "cross",
      "householderProduct",
      "ldlSolve",
      "luSolve",
      "ormqr",
      "tensorInv",
    ]);
  });

  test("exceptions are frequencies, windows, filters, and functions of signals that PyTorch lacks", () => {
    expect(missing(fft, "fft.").sort()).toEqual(["fftfreq", "rfftfreq"]);
    expect(missing(signal, "signal.").sort()).toEqual([
      "bartlettWindow",
      "blackmanWindow",
      "convolve",
      "correlate",
      "hammingWindow",
      "hannWindow",
      "istft",
      "kaiserWindow",
      "melFilterbank",
      "resample",
      "spectrogram",
    ]);
  });

  test("layers are drawn, unless PyTorch lacks them, they contain layers, or their operation is drawn", () => {
    const isLayer = (name: string) => (nn as Record<string, unknown>)[name] !== nn.Module && isModule(name);
    expect(missing(nn, "nn.").filter(isLayer).sort()).toEqual([
      "CTCLoss",
      "CosineEmbeddingLoss",
      "FractionalMaxPool2d",
      "FractionalMaxPool3d",
      "GPT",
      "GaussianNLLLoss",
      "HingeEmbeddingLoss",
      "Int4Linear",
      "LanguageModel",
      "Llama",
      "MLP",
      "MarginRankingLoss",
      "MaxUnpool1d",
      "MaxUnpool2d",
      "MaxUnpool3d",
      "ModuleDict",
      "ModuleList",
      "MultiHeadAttention",
      "MultiLabelMarginLoss",
      "MultiLabelSoftMarginLoss",
      "ParameterDict",
      "ParameterList",
      "QuantizedEmbedding",
      "QuantizedLinear",
      "Sequential",
      "SwiGLU",
      "Transformer",
      "TransformerBlock",
      "TransformerDecoder",
      "TransformerDecoderLayer",
      "TransformerEncoder",
      "TripletMarginLoss",
      "TripletMarginWithDistanceLoss",
    ]);
  });

  test("exceptions are optimizers that PyTorch lacks, or that call the loss themselves", () => {
    const isOptimizer = (name: string) => (optim as Record<string, unknown>)[name] !== optim.Optimizer && steps(name);
    expect(missing(optim, "optim.").filter(isOptimizer).sort()).toEqual(["Adafactor", "LBFGS", "Lion", "Muon"]);
  });
});

const prototypeOf = (space: object, name: string): unknown =>
  ((space as Record<string, unknown>)[name] as { prototype?: unknown }).prototype;
const isModule = (name: string): boolean => prototypeOf(nn, name) instanceof nn.Module;
const steps = (name: string): boolean => prototypeOf(optim, name) instanceof optim.Optimizer;

describe("each drawing runs with small sizes", () => {
  for (const [at, { family, name, drawing }] of drawings.entries()) {
    test(`${family} runs: ${name}`, () => {
      for (const draw of [new SmallDraw(1, at), new SmallDraw(2, at), new Draw(3, at, true)]) {
        const each = caseOf(family, name, drawing(draw));
        checkSound(each);
        manualSeed(at);
        const operands = each.operands.map((operand) => view(drawBase(operand, baseShape(operand)), operand).detach());
        const results = prepare(each, operands).call();
        if (each.compared !== null) expect(results.length).toBeGreaterThan(each.compared);
      }
    });
  }
});
