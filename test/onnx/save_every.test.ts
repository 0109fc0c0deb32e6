/**
 * Every function and layer of the library is written as ONNX or rejected, as docs/onnx.md says: the sweep of `bench/`
 * draws calls. Written models give the same results here and, where the Python of the fixtures is installed, in
 * onnxruntime.
 */
import { describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onnxAlone, presentPython } from "../../scripts/fixtures/environment.ts";
import { ArgumentError, type DType, io, nn, noGrad, type Tensor, withBackend } from "../../src/index.ts";
import { repeats } from "../support/repeats.ts";
import { type Drawn, drawings, LAYERS_ELSEWHERE } from "./drawn.ts";

/** Functions that can't be written, by the reason in the error. */
const rejected: readonly (readonly [reason: RegExp, names: string])[] = [
  [
    /random numbers/,
    `rand randn randLike randnLike randperm randint randintLike bernoulli multinomial dropout alphaDropout
    featureAlphaDropout dropout1d dropout2d dropout3d gumbelSoftmax fractionalMaxPool2d
    fractionalMaxPool3d`,
  ],
  [/nextafter|mode|bincount|ctc/, "nextafter mode bincount ctcLoss"],
  [
    /cholesky|solve|luFactor|svd|eigh|ldlFactor|complexEig|solveTriangular|lstsq|qr/,
    `linalg.cholesky linalg.choleskyEx linalg.choleskyInverse linalg.choleskySolve linalg.cond linalg.det linalg.eig
    linalg.eigh linalg.eigvals linalg.eigvalsh linalg.geqrf linalg.inv linalg.invEx linalg.ldlFactor linalg.ldlFactorEx
    linalg.logdet linalg.lstsq linalg.lu linalg.luFactor linalg.luFactorEx linalg.matrixRank linalg.pinv linalg.qr
    linalg.slogdet linalg.solve linalg.solveEx linalg.solveTriangular linalg.svd linalg.svdvals linalg.tensorSolve`,
  ],
  [
    /complex results/,
    `fft.fft fft.ifft fft.rfft fft.ihfft fft.fft2 fft.fftn fft.ifft2 fft.ifftn fft.rfft2 fft.rfftn fft.ihfft2
    fft.ihfftn signal.stft`,
  ],
  [/expected the module to return tensors/, "allClose equal"],
];
const reasons = new Map(
  rejected.flatMap(([reason, names]) => names.split(/\s+/).map((name) => [name, reason] as const)),
);

/** Functions that can be written for other floats. */
const reasonsOfDoubles = new Map([
  ["erfcx", /erfcx of float64/],
  ["erfinv", /erfinv of float64/],
  ["ndtri", /ndtri of float64/],
  ["logNdtr", /logNdtr of float64/],
]);

/** The largest difference relative to the largest element: rounding of one result, or of a few in half floats. */
const tolerances: Partial<Record<DType, number>> = {
  float32: 2e-6,
  float64: 1e-12,
  float16: 2 ** -9,
  bfloat16: 2 ** -6,
};

function differenceOf(actual: Tensor, expected: Tensor): number {
  expect(actual.describe()).toBe(expected.describe());
  const [a, b] = [actual, expected].map((x) => Array.from(x.to("float64").dataSync() as ArrayLike<number>, Number));
  const most = b.reduce((result, value) => (Number.isFinite(value) ? Math.max(result, Math.abs(value)) : result), 1);
  const worst = a.map((value, at) => (value === b[at] || Object.is(value, b[at]) ? 0 : Math.abs(value - b[at])));
  return worst.reduce((result, each) => Math.max(result, Number.isNaN(each) ? Infinity : each), 0) / most;
}

const copiesOf = ({ inputs }: Drawn) =>
  Object.fromEntries(Object.entries(inputs).map(([name, x]) => [name, x.clone()]));

/** Runs the module itself. */
function resultsOf(drawn: Drawn): readonly Tensor[] {
  drawn.module.eval();
  return noGrad(() => drawn.module.forward(...Object.values(copiesOf(drawn)))) as Tensor[];
}

async function check(drawn: Drawn): Promise<void> {
  const isDouble = drawn.inputs["x0"]?.dtype === "float64";
  const reason = reasons.get(drawn.name) ?? (isDouble ? reasonsOfDoubles.get(drawn.name) : undefined);
  const saved = io.saveOnnx(drawn.module as never, drawn.inputs);
  if (reason) {
    const error = await saved.then(
      () => undefined,
      (each: unknown) => each,
    );
    expect(error).toBeInstanceOf(ArgumentError);
    expect((error as ArgumentError).message).toMatch(reason);
    return;
  }
  const model = await io.loadOnnx(await saved);
  const results = (await model.run(copiesOf(drawn))) as Record<string, Tensor>;
  for (const [at, expected] of resultsOf(drawn).entries()) {
    const difference = differenceOf(results[`output_${at}`], expected);
    expect(difference).toBeLessThanOrEqual(tolerances[expected.dtype] ?? 0);
  }
}

describe("every function is written or rejected", () => {
  test.each(drawings.map(({ name, draw }) => [name, draw] as const))(
    "%s is written or rejected as documented",
    (_, draw) =>
      withBackend("cpu", async () => {
        for (let seed = 1; seed <= repeats({ usual: 1, all: 8 }); seed++) {
          const drawn = draw(seed);
          if (drawn) await check(drawn);
        }
      }),
  );

  test("every layer is drawn, or written by another test", () => {
    const drawn = new Set(drawings.map(({ name }) => name.split(": ")[1]));
    const isLayer = (name: string) => (nn as unknown as Record<string, { prototype?: unknown }>)[name]?.prototype;
    const others = Object.keys(nn).filter((name) => isLayer(name) instanceof nn.Module && !drawn.has(`nn.${name}`));
    expect(others.sort()).toEqual([...LAYERS_ELSEWHERE].sort());
  });
});

const described = (x: Tensor) => ({
  data: Array.from(x.to(x.dtype === "bfloat16" ? "float32" : x.dtype).dataSync() as ArrayLike<number>, (each) =>
    Number.isFinite(Number(each)) ? Number(each) : `${each}`,
  ),
  dtype: x.dtype,
  shape: x.shape,
});

async function write(folder: string, file: string, drawn: Drawn): Promise<void> {
  const inputs = Object.fromEntries(Object.entries(drawn.inputs).map(([name, x]) => [name, described(x)]));
  await io.saveOnnx(drawn.module as never, drawn.inputs, { path: join(folder, `${file}.onnx`) });
  const outputs = Object.fromEntries(resultsOf(drawn).map((x, at) => [`output_${at}`, described(x)]));
  await Bun.write(join(folder, `${file}.json`), JSON.stringify({ inputs, outputs }));
}

/** In half floats, runtimes round in each of several nodes; Orchard rounds once. */
const runtimeTolerances: Partial<Record<DType, number>> = { float16: 2 ** -9, bfloat16: 2 ** -5 };

const python = presentPython(onnxAlone);

test.skipIf(python === undefined)("onnxruntime computes the results of the saved functions and layers", async () => {
  const folder = await mkdtemp(join(tmpdir(), "orchard-onnx-"));
  const dtypes = new Map<string, DType>();
  try {
    await withBackend("cpu", async () => {
      for (const [at, { draw }] of drawings.entries()) {
        if (at % repeats({ usual: 12, all: 1 }) !== 0) continue;
        const drawn = draw(repeats({ usual: 1, all: 9 }));
        if (!drawn || reasons.has(drawn.name)) continue;
        await write(folder, `${at}_${drawn.name}`, drawn);
        dtypes.set(`${at}_${drawn.name}`, Object.values(drawn.inputs)[0]?.dtype ?? "float32");
      }
    });
    const run = Bun.spawnSync([python!, join(import.meta.dir, "runtime.py"), folder]);
    expect(run.exitCode).toBe(0);
    const results = JSON.parse(run.stdout.toString()) as Record<string, readonly [number, string] | string>;
    expect(Object.keys(results).length).toBe(dtypes.size);
    const isWrong = ([name, result]: [string, readonly [number, string] | string]) =>
      typeof result === "string" || result[0] > (runtimeTolerances[dtypes.get(name)!] ?? 1e-5);
    expect(Object.entries(results).filter(isWrong)).toEqual([]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
