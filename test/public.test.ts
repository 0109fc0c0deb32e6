/** The public API: every name has a comment that editors show, none is internal, and operations are methods. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { packageRoot } from "../src/core/paths.ts";
import * as library from "../src/index.ts";
import * as operations from "../src/ops/index.ts";
import { methods } from "../src/ops/methods.ts";

interface Declaration {
  readonly name: string;
  /** The source before the declaration, up to the end of its comment; undefined if it has no comment. */
  readonly comment: string | undefined;
}

const read = (path: string) => readFileSync(path, "utf8");

/** Every name that a file exports, with its declaration, through re-exports. */
function declarationsOf(path: string): Declaration[] {
  const text = read(path);
  const whole = [...text.matchAll(/^export \* from "(.*)";/gm)].flatMap(([, from]) =>
    declarationsOf(join(dirname(path), from)),
  );
  const namespaces = [...text.matchAll(/^export \* as (\w+) from "(.*)";/gm)].flatMap(([, name, from]) =>
    namespaceOf(name, join(dirname(path), from)),
  );
  const named = [...text.matchAll(/^export (?:type )?\{([^}]*)\}(?: from "(.*)")?;/gm)].flatMap(([, names, from]) =>
    names
      .split(",")
      .map((name) => name.trim().replace(/^type /, ""))
      .filter(Boolean)
      .map((name) => renamedDeclaration(from ? join(dirname(path), from) : path, name)),
  );
  const own = [...text.matchAll(declaration())].map(([, name]) => declarationOf(path, name));
  return [...whole, ...namespaces, ...named, ...own];
}

/**
 * Returns the declarations of a namespace: its name, with the file's comment, and the file's exports as its members.
 */
function namespaceOf(name: string, path: string): Declaration[] {
  const comment = /^\/\*\*(?:(?!\*\/)[\s\S])*\*\/\n/.exec(read(path))?.[0];
  return [{ name, comment }, ...declarationsOf(path).map((own) => ({ ...own, name: `${name}.${own.name}` }))];
}

/** Finds the declaration of `name`, or of `name as other`. */
function renamedDeclaration(path: string, names: string): Declaration {
  const [name, other = name] = names.split(" as ");
  return { ...declarationOf(path, name), name: other };
}

const declaration = (name = "\\w+") =>
  new RegExp(`^export (?:abstract |async )?(?:const|function|class|interface|type) (${name})\\b`, "gm");

/** The first declaration of a name; of overloads, the one with the comment. */
function declarationOf(path: string, name: string): Declaration {
  const text = read(path);
  const at = declaration(name).exec(text)?.index;
  if (at === undefined) throw new Error(`${path} does not declare ${name}`);
  const before = text.slice(0, at).replace(/(?:\/\/ biome-ignore .*\n)+$/, "");
  return { name, comment: /\/\*\*(?:(?!\*\/)[\s\S])*\*\/\n$/.exec(before)?.[0] };
}

const declarations = declarationsOf(join(packageRoot, "src", "index.ts"));

describe("src/index.ts exports every name", () => {
  test("this test sees every name that a program sees", () => {
    const names = new Set(declarations.map(({ name }) => name));
    expect(Object.keys(library).filter((name) => !names.has(name))).toEqual([]);
    expect(Object.keys(library).length).toBeGreaterThan(150);
  });

  test("every exported name has a comment", () => {
    expect(declarations.filter(({ comment }) => comment === undefined).map(({ name }) => name)).toEqual([]);
  });

  test("no exported name is internal", () => {
    expect(declarations.filter(({ comment }) => comment?.includes("@internal")).map(({ name }) => name)).toEqual([]);
  });
});

/** Operations that are not methods, and why. */
const exceptions: Readonly<Record<string, readonly string[]>> = {
  "it makes a tensor from something else": [
    "arange",
    "empty",
    "eye",
    "fromArray",
    "full",
    "linspace",
    "logspace",
    "ones",
    "tensor",
    "zeros",
    "trilIndices",
    "triuIndices",
    "normal",
    "rand",
    "randint",
    "randn",
    "randperm",
    "uniform",
  ],
  "it takes the shape of a tensor and none of its elements": [
    "emptyLike",
    "fullLike",
    "onesLike",
    "zerosLike",
    "randLike",
    "randintLike",
    "randnLike",
  ],
  "its operands are queries, keys and values": ["flashAttention", "scaledDotProductAttention"],
  "its first operand is the condition": ["where"],
  "it gives two results": ["addLayerNorm", "addRmsNorm"],
  "its first operand is indices": ["embedding", "embeddingBag", "unravelIndex"],
  "it is a loss": [
    "binaryCrossEntropy",
    "binaryCrossEntropyWithLogits",
    "cosineEmbeddingLoss",
    "crossEntropy",
    "ctcLoss",
    "gaussianNllLoss",
    "hingeEmbeddingLoss",
    "huberLoss",
    "klDiv",
    "l1Loss",
    "marginRankingLoss",
    "mseLoss",
    "multiMarginLoss",
    "multilabelMarginLoss",
    "multilabelSoftMarginLoss",
    "nllLoss",
    "poissonNllLoss",
    "smoothL1Loss",
    "softMarginLoss",
    "tripletMarginLoss",
    "tripletMarginWithDistanceLoss",
  ],
  "its operands are two sets of vectors": ["cosineSimilarity", "pairwiseDistance"],
  "PyTorch has it among the functions of layers": [
    ...[
      "adaptiveAvgPool",
      "adaptiveMaxPool",
      "avgPool",
      "conv",
      "convTranspose",
      "lpPool",
      "maxPool",
      "maxUnpool",
    ].flatMap((name) => [1, 2, 3].map((rank) => `${name}${rank}d`)),
    "affineGrid",
    "channelShuffle",
    "fold",
    "gridSample",
    "interpolate",
    "pixelShuffle",
    "pixelUnshuffle",
    "batchNorm",
    "groupNorm",
    "instanceNorm",
    "localResponseNorm",
    "normalize",
    "bilinear",
    "fractionalMaxPool2d",
    "fractionalMaxPool3d",
  ],
  "it takes a list of tensors": [
    "blockDiag",
    "broadcastTensors",
    "cartesianProd",
    "cat",
    "columnStack",
    "dstack",
    "hstack",
    "meshgrid",
    "stack",
    "vstack",
  ],
  "its operands are the parts of complex numbers": ["complex", "polar"],
  "its first operand is in order, and the other one is searched": ["searchsorted"],
  "its operands are two sets of points": ["cdist"],
  "its operands are elements and a set": ["isin"],
  "its first operand is the equation": ["einsum"],
  "its first operand is the chance, a tensor or a number": ["bernoulli"],
  "its first operand is the order, a number": ["polygamma"],
  "it is the method to": ["toDType"],
  "PyTorch has it as a function only": ["gradient"],
};

describe("tensors have methods for operations", () => {
  const functions = Object.entries(operations).filter(([, value]) => typeof value === "function");
  const excepted = Object.values(exceptions).flat();

  test("every operation is a method, or is excepted with a reason", () => {
    const names = functions.map(([name]) => name);
    expect(names.filter((name) => !(name in methods) && !excepted.includes(name))).toEqual([]);
    expect(excepted.filter((name) => !names.includes(name) || name in methods)).toEqual([]);
  });

  test("a method is the function with the tensor as its first operand", () => {
    const x = library.tensor([
      [1, 7],
      [3, 5],
    ]);
    expect(x.add(1).toArray()).toEqual([
      [2, 8],
      [4, 6],
    ]);
    expect(x.sum({ dim: 0 }).toArray()).toEqual([4, 12]);
    expect(x.max({ dim: 1 }).indices.toArray()).toEqual([1n, 1n]);
    expect(x.to("int32").dtype).toBe("int32");
    expect(x.split(1).map(({ shape }) => shape)).toEqual([
      [1, 2],
      [1, 2],
    ]);
  });

  test("methods are not properties of a tensor itself", () => {
    expect(Object.keys(library.tensor([1])).filter((name) => name in methods)).toEqual([]);
  });

  test("backward, detach and clone are methods", () => {
    const w = library.tensor([1, 2], { requiresGrad: true });
    w.mul(w).sum().backward();
    expect(w.grad?.toArray()).toEqual([2, 4]);
    expect([w.detach().requiresGrad, w.clone().requiresGrad]).toEqual([false, true]);
  });
});
