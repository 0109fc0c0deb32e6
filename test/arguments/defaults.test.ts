/**
 * Compares the defaults of every class and function, as the argument tables and optimizers state them, with PyTorch's
 * (`scripts/fixtures/defaults.py`) and with the documentation of each option.
 */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { signatures } from "../../src/core/parameters.ts";
import { packageRoot } from "../../src/core/paths.ts";
import * as orchard from "../../src/index.ts";
import { calls } from "./upper.ts";

const { nn, optim, zeros } = orchard;

type Defaults = Readonly<Record<string, unknown>>;

const fixture = join(packageRoot, "test", "fixtures", "defaults", "pytorch.json");
const pytorch = JSON.parse(readFileSync(fixture, "utf8")) as Readonly<Record<string, Defaults>>;

/** PyTorch's names, where they differ. */
const pytorchName: Readonly<Record<string, string>> = {
  ReduceOnPlateau: "schedules.ReduceLROnPlateau",
  GradScaler: "amp.GradScaler",
  oneCycle: "schedules.OneCycleLR",
  "optim.step": "schedules.StepLR",
  "optim.multiStep": "schedules.MultiStepLR",
  "optim.polynomial": "schedules.PolynomialLR",
  "optim.cyclic": "schedules.CyclicLR",
  "optim.cosineWarmRestarts": "schedules.CosineAnnealingWarmRestarts",
};
const pytorchOption: Readonly<Record<string, string>> = {
  floor: "etaMin",
  multiple: "TMult",
  warmupShare: "pctStart",
  stepsUp: "stepSizeUp",
  stepsDown: "stepSizeDown",
  newtonSchulzSteps: "nsSteps",
  newtonSchulzCoefficients: "nsCoefficients",
  adjustLearningRate: "adjustLrFn",
};

/**
 * Returns PyTorch's defaults for an operation: the class's, or those of the function in the first module that defines
 * it.
 */
function pytorchOf(operation: string): Defaults | undefined {
  const named = pytorchName[operation] ?? (operation in pytorch ? operation : undefined);
  if (named !== undefined || operation.includes(".")) return pytorch[named ?? operation];
  const modules = ["nn", "functional", "torch", "linalg", "special", "utils", "optim"];
  return modules.map((module) => pytorch[`${module}.${operation}`]).find((own) => own !== undefined);
}

/**
 * Treats None, an empty list and a missing value as equal, and a number as equal to a list that repeats it for each
 * axis.
 */
function plain(value: unknown): unknown {
  if (value === undefined || (Array.isArray(value) && value.length === 0)) return null;
  if (Array.isArray(value)) return value.every((own) => own === value[0]) ? value[0] : value;
  if (typeof value === "bigint") return Number(value);
  return value === Number.POSITIVE_INFINITY ? "inf" : value === Number.NEGATIVE_INFINITY ? "-inf" : value;
}

/** Defaults by operation. Optimizers' defaults come from their parameter groups. */
const ours = new Map<string, Defaults>(
  [...signatures.values()].map(({ operation, parameters }) => [
    operation,
    Object.fromEntries(
      Object.entries(parameters)
        .filter(([, { isRequired }]) => !isRequired)
        .map(([name, { fallback }]) => [name, fallback]),
    ),
  ]),
);
const optimizers =
  "ASGD Adadelta Adafactor Adagrad Adam AdamW Adamax LBFGS Lion Muon NAdam RAdam RMSprop Rprop SGD".split(" ");
type OptimizerClass = new (parameters: readonly orchard.Tensor[]) => { readonly groups: readonly object[] };
for (const name of optimizers) {
  const Class = (optim as Record<string, unknown>)[name] as OptimizerClass;
  const { groups } = new Class([zeros([2, 2], { requiresGrad: true })]);
  const { parameters: _, initialLr: __, ...options } = groups[0] as Record<string, unknown>;
  ours.set(name, options);
}

type Difference = readonly [ours: unknown, pytorch: unknown, why: string];

const same = "PyTorch's None stands for what ours is";
const lastAxis = "PyTorch guesses an axis and warns that this is deprecated; the last one is meant nearly always";
const epsilon = "PyTorch takes the machine epsilon of the dtype, which differs between float16 and float32";
const inTraining = "as dropout, whose default is true in PyTorch too";
const jordan = "Jordan's own implementation, which came before PyTorch's, has these";

/** Defaults that differ from PyTorch's, and why. */
const differences: Readonly<Record<string, Difference>> = {
  "tensor.requiresGrad": [null, false, "a tensor that was not asked to needs no gradient"],
  "gridSample.alignCorners": [false, null, same],
  "affineGrid.alignCorners": [false, null, same],
  "interpolate.recomputeScaleFactor": [false, null, same],
  "cross.dim": [-1, null, "PyTorch takes the first axis of size 3 and warns; linalg.cross takes the last"],
  "norm.p": [2, "fro", "the Frobenius norm is that of p = 2"],
  "softmax.dim": [-1, null, lastAxis],
  "logSoftmax.dim": [-1, null, lastAxis],
  "Softmax.dim": [-1, null, lastAxis],
  "LogSoftmax.dim": [-1, null, lastAxis],
  "rmsNorm.eps": [1e-6, null, epsilon],
  "RMSNorm.eps": [1e-6, null, epsilon],
  "alphaDropout.training": [true, false, inTraining],
  "featureAlphaDropout.training": [true, false, inTraining],
  "Softmin.dim": [-1, null, lastAxis],
  "scaledDotProductAttention.dropoutP": [null, 0, "without it there is no dropout"],
  "Upsample.recomputeScaleFactor": [false, null, same],
  "crossEntropy.ignoreIndex": [null, -100, "without it -100 is ignored"],
  "CrossEntropyLoss.ignoreIndex": [null, -100, "without it -100 is ignored"],
  "nanToNum.nan": [0, null, same],
  "oneHot.numClasses": [null, -1, "-1 is PyTorch's way to leave it out"],
  "meshgrid.indexing": ["ij", null, same],
  "sliceScatter.start": [0, null, same],
  "gradient.spacing": [1, null, same],
  "cdist.computeMode": ["donotUseMmForEuclidDist", "use_mm_for_euclid_dist_if_necessary", "exact for every size"],
  "randint.dtype": [null, 4, "without it the result is int64, PyTorch's number 4"],
  "trilIndices.dtype": ["int64", 4, "PyTorch's number 4 is int64"],
  "triuIndices.dtype": ["int64", 4, "PyTorch's number 4 is int64"],
  "randperm.dtype": [null, 4, "without it the result is int64, PyTorch's number 4"],
  "var.correction": [1, null, same],
  "std.correction": [1, null, same],
  "varMean.correction": [1, null, same],
  "stdMean.correction": [1, null, same],
  "Muon.lr": [0.02, 1e-3, jordan],
  "Muon.weightDecay": [0, 0.1, jordan],
  "Muon.adjustLearningRate": ["original", null, same],
};

describe("options have PyTorch's defaults", () => {
  const compared = [...ours].flatMap(([operation, own]) =>
    Object.entries(own).flatMap(([option, value]) => {
      const theirs = pytorchOf(operation);
      const name = pytorchOption[option] ?? option;
      return theirs !== undefined && Object.hasOwn(theirs, name)
        ? [{ place: `${operation}.${option}`, own: plain(value), theirs: plain(theirs[name]) }]
        : [];
    }),
  );

  test("documented values equal Orchard's, except for the differences in a table", () => {
    const found = compared
      .filter(({ own, theirs }) => JSON.stringify(own) !== JSON.stringify(theirs))
      .map(({ place, own, theirs }) => [place, own, theirs] as const);
    const argued = Object.entries(differences).map(([place, [own, theirs]]) => [place, own, theirs] as const);
    expect(found.toSorted()).toEqual(argued.toSorted()); // the order depends on which modules load first
  });

  test("defaults are known for hundreds of options", () => expect(compared.length).toBeGreaterThan(600));
});

/** Returns the options of an interface, each with the default that its documentation states. */
interface Documented {
  /** Whether the interface belongs to a function in `src/ops` rather than to a class. */
  readonly isOfFunction: boolean;
  readonly bases: readonly string[];
  readonly defaults: ReadonlyMap<string, unknown>;
}

/** The interfaces in the sources that declare options. */
function documentedInterfaces(): ReadonlyMap<string, Documented> {
  const found = new Map<string, Documented>();
  for (const file of new Bun.Glob("**/*.ts").scanSync(join(packageRoot, "src"))) {
    const text = readFileSync(join(packageRoot, "src", file), "utf8");
    for (const [, name, heads = "", body = ""] of text.matchAll(
      /^export interface (\w+Options)\b([^{]*)\{\n([\s\S]*?)^\}/gm,
    )) {
      const options = body.matchAll(/\/\*\*((?:[^*]|\*(?!\/))*)\*\/\s+(?:readonly )?(\w+)\??:/g);
      const defaults = [...options].flatMap(([, words = "", option]) => {
        const value = documentedDefault(words);
        return value === undefined ? [] : [[option, value] as const];
      });
      found.set(name, {
        isOfFunction: file.startsWith("ops/"),
        bases: heads.match(/\w+Options\b/g) ?? [],
        defaults: new Map(defaults),
      });
    }
  }
  return found;
}

const number = String.raw`-?\d+(?:,\d{3})*(?:\.\d+)?(?:e-?\d+)?`;
const defaultPattern = new RegExp(
  `\\bDefault (true|false|null|${number}|\`?"[^"]*"\`?|-?Infinity)(?=[.,;:]|\\s*$)(?!\\.\\d)`,
);

/** Returns the value in `Default 0.1.`; undefined if the default is not a value, as in `Default: those of x`. */
function documentedDefault(words: string): unknown {
  const text = defaultPattern.exec(words)?.[1];
  if (text === undefined) return undefined;
  const plainText = text.includes('"') ? text.replaceAll("`", "") : text.replaceAll(",", "");
  return /Infinity/.test(plainText) ? plainText.replace("Infinity", "inf") : (JSON.parse(plainText) as unknown);
}

describe("documented defaults are true", () => {
  const interfaces = documentedInterfaces();
  const allOf = (name: string): readonly (readonly [string, unknown])[] => {
    const own = interfaces.get(name);
    return own === undefined ? [] : [...own.bases.flatMap(allOf), ...own.defaults];
  };
  /** The names of a function and a class may differ only in the case of the first letter. */
  const operationOf = (name: string): string | undefined => {
    const base = name.replace(/Options$/, "");
    const [upper, lower] = [base, base[0].toLowerCase() + base.slice(1)];
    const known = interfaces.get(name)!.isOfFunction ? [lower] : [upper, lower, `optim.${lower}`];
    return known.find((operation) => ours.has(operation));
  };
  const compared = [...interfaces.keys()].flatMap((name) => {
    const operation = operationOf(name);
    return [...new Map(allOf(name))].flatMap(([option, documented]) => {
      const own = operation === undefined ? undefined : ours.get(operation)![option];
      return own === undefined ? [] : [{ place: `${operation}.${option}`, own: plain(own), documented }];
    });
  });

  test("documented defaults are correct", () => {
    const wrong = compared.filter(({ own, documented }) => own !== documented);
    expect(wrong).toEqual([]);
  });

  test("documented defaults are known for hundreds of options", () => expect(compared.length).toBeGreaterThan(200));

  test("defaults of parameters other than options are correct", () => {
    const functions = /\/\*\*((?:[^*]|\*(?!\/))*)\*\/\s*export (?:async )?function (\w+)/g;
    const files = [...new Bun.Glob("**/*.ts").scanSync(join(packageRoot, "src"))];
    const found = files.flatMap((file) =>
      [...readFileSync(join(packageRoot, "src", file), "utf8").matchAll(functions)].flatMap(
        ([, words = "", name = ""]) =>
          [...words.matchAll(/@param (\w+)([^@]*)/g)].flatMap(([, parameter = "", text = ""]) => {
            const documented = documentedDefault(text.replaceAll(/\n \*/g, "").replace(/\bdefault /, "Default "));
            const own = ours.get(name)?.[parameter];
            return documented === undefined || own === undefined
              ? []
              : [{ place: `${name}.${parameter}`, own: plain(own), documented }];
          }),
      ),
    );
    expect(found.map(({ place }) => place)).toContain("valueAndGrad.count");
    expect(found.filter(({ own, documented }) => own !== documented)).toEqual([]);
  });
});

describe("layers have documented dtypes by default", () => {
  /** Layers with parameters, and valid arguments without a dtype. */
  const layers = Object.entries(nn as unknown as Record<string, new (...values: unknown[]) => orchard.nn.Module>)
    .filter(([name]) => /^[A-Z]/.test(name) && signatures.get(name)?.parameters["dtype"] !== undefined && name in calls)
    .map(([name, Class]) => {
      const right = calls[name][1]();
      const last = right.at(-1);
      const isOptions = Object.getPrototypeOf(last ?? 0) === Object.prototype;
      const { dtype: _, ...options } = isOptions ? (last as Record<string, unknown>) : {};
      const operands = isOptions ? right.slice(0, -1) : right;
      return { name, make: (more: object) => new Class(...operands, { ...options, ...more }) };
    });
  const dtypesOf = (module: orchard.nn.Module) => [...new Set(module.parameters().map(({ dtype }) => dtype))];

  test.each(layers)("$name is float32 by default", ({ make }) => {
    expect(dtypesOf(make({}))).toEqual(["float32"]);
    for (const dtype of ["float64", "float16", "bfloat16"] as const) expect(dtypesOf(make({ dtype }))).toEqual([dtype]);
  });

  test("dtypes are known for dozens of layers", () => expect(layers.length).toBeGreaterThan(30));
});
