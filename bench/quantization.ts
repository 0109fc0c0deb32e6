// Computes the held-out loss of a trained GPT in each format and scheme, compared with float32: `bun
// bench/quantization.ts RUN [words] [--windows 128] [--group-size 64] [--calibration 128]`, where RUN is a folder of
// `orchard train`. The windows are the run's held-out ones; calibration uses windows of its training data. Further
// arguments select rows.
//
// Most of the time is spent packing weights on one thread. So each row is computed in a separate process with two
// threads, and as many rows run in parallel as the processor allows.

import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { inParallel } from "../scripts/parallel.ts";
import { noGrad } from "../src/autograd/modes.ts";
import {
  type AffineFormat,
  type GroupSize,
  matmulPerGroup,
  matmulPerTensor,
  matmulPremultiplied,
  matmulSmooth,
  nn,
  quantize,
  quantizedMatmul,
  quantizePerTensor,
  smoothQuantize,
  type Tensor,
} from "../src/index.ts";
import { productsFor } from "../src/nn/quantized/calibration/calibrate.ts";
import { roundByErrors } from "../src/nn/quantized/calibration/gptq.ts";
import { ggmlFormats } from "../src/quant/formats.ts";
import { Generator } from "../src/random/generator.ts";
import { checkpointsIn } from "../src/train/folder.ts";
import { makeModel } from "../src/train/model.ts";
import { loadRun } from "../src/train/session.ts";
import { evaluate } from "../src/train/step.ts";
import { openText, tokenizerOf } from "../src/train/text.ts";
import { meanMagnitudes, scaleColumns } from "./support/awq.ts";
import { table } from "./support/measure.ts";

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    windows: { type: "string", default: "128" },
    "group-size": { type: "string", default: "64" },
    calibration: { type: "string", default: "128" },
    row: { type: "string" },
  },
});
const [run, ...chosen] = positionals;
if (run === undefined) throw new Error("expected the folder of a run: bun bench/quantization.ts runs/a");
const { model: weights, extra } = await loadRun(checkpointsIn(run));
const settings = { ...extra.settings, dtype: "float32" as const };
const tokenizer = tokenizerOf(settings, extra.tokenizer);
const text = await openText(settings, tokenizer);
const BATCH = 16;
const windows = Number(flags.windows);
const groupSize = Number(flags["group-size"]) as GroupSize;

function newModel(): nn.LanguageModel {
  const model = makeModel(settings, tokenizer.vocabularySize, new Generator(0)).eval();
  model.loadStateDict(weights);
  return model;
}

const lossOf = (model: nn.LanguageModel): Promise<number> => evaluate(model, text.heldOut.batches(BATCH, windows));

/** Schemes apply only to the linear layers of blocks; the table and the norms are float32. */
const isScheme = (name: string): boolean => name.startsWith("blocks.");
const batches = lazy(() => Array.from({ length: Number(flags.calibration) / BATCH }, () => text.train.next(BATCH).x));
const calibration = lazy(() => nn.calibrate(newModel(), batches(), { products: true }));
const magnitudes = lazy(() => meanMagnitudes(newModel(), batches()));

/** Computes the value at the first call and caches it. */
function lazy<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

/** AWQ's scaled columns, rounded to nearest, by least squares, or by GPTQ for the scaled inputs. */
function withScaledColumns(format: AffineFormat, rounding: nn.ModelRounding): nn.LanguageModel {
  return withScheme(({ weight, inputs }, name) => {
    const products = productsFor("bench", name, calibration().get(name)!, inputs);
    const nearest = (scaled: Tensor) => quantize(scaled, { ...format, rounding: "nearest" });
    const found = scaleColumns(weight, magnitudes().get(name)!, products, nearest);
    const [scales, wide] = [found.scales, found.scales.to("float64")];
    const scaled = weight.mul(scales) as Tensor;
    const quantized =
      rounding === "gptq"
        ? roundByErrors(scaled, products.div(wide).div(wide.reshape([inputs, 1])) as Tensor, format)
        : quantize(scaled, { ...format, rounding });
    return (x) => quantizedMatmul(x.div(scales) as Tensor, quantized);
  });
}

/**
 * A model whose blocks' linear layers compute products in another way.
 *
 * @param make creates the product of a layer
 */
function withScheme(make: (layer: nn.Linear, name: string) => (x: Tensor) => Tensor): nn.LanguageModel {
  const model = newModel();
  for (const [name, layer] of model.namedModules())
    if (layer instanceof nn.Linear && isScheme(name)) {
      const product = noGrad(() => make(layer, name));
      const value = (x: Tensor): Tensor => (layer.bias ? (product(x).add(layer.bias) as Tensor) : product(x));
      Object.defineProperty(layer, "forward", { value });
    }
  return model;
}

/** Quantizes the same layers as the schemes do, so that rows can be compared. */
function withFormat(format: nn.QuantizeModelOptions["format"], options: Partial<nn.QuantizeModelOptions> = {}) {
  const model = newModel();
  const report = nn.quantizeModel(model, { format, include: "blocks", ...options });
  return { model, formats: [...new Set(report.layers.flatMap((layer) => layer.format ?? []))].join(" and ") };
}

type Made = () => { readonly model: nn.LanguageModel; readonly formats?: string };
const affine = [2, 3, 4, 5, 6, 8] as const;
const rows: readonly (readonly [name: string, bits: string, make: Made])[] = [
  ["float32", "32", () => ({ model: newModel() })],
  ...ggmlFormats.map((format): [string, string, Made] => [format, "", () => withFormat(format)]),
  ...affine.flatMap((bits): [string, string, Made][] => {
    const format = { bits, groupSize, symmetric: false } as const;
    const size = String(bits + 64 / groupSize); // with scales and biases in float32
    return [
      [`affine ${bits}, nearest`, "", () => withFormat(format, { rounding: "nearest" })],
      [`affine ${bits}, least squares`, "", () => withFormat(format, { rounding: "leastSquares" })],
      [`affine ${bits}, GPTQ`, "", () => withFormat(format, { calibration: calibration() })],
      [`affine ${bits}, AWQ`, size, () => ({ model: withScaledColumns(format, "nearest") })],
      [`affine ${bits}, AWQ and least squares`, size, () => ({ model: withScaledColumns(format, "leastSquares") })],
      [`affine ${bits}, AWQ and GPTQ`, size, () => ({ model: withScaledColumns(format, "gptq") })],
    ];
  }),
  ...([4, 8] as const).map((bits): [string, string, Made] => [
    `(1) per tensor, ${bits}`,
    String(bits),
    () => ({
      model: withScheme(({ weight }) => {
        const quantized = quantizePerTensor(weight, { bits });
        return (x) => matmulPerTensor(x, quantized);
      }),
    }),
  ]),
  [
    "(2) per group, affine 4",
    "5",
    () => ({
      model: withScheme(({ weight }) => {
        const quantized = quantize(weight, { bits: 4 });
        return (x) => matmulPerGroup(x, quantized);
      }),
    }),
  ],
  [
    "(3) scales beforehand, affine 4",
    "5",
    () => ({
      model: withScheme(({ weight }) => {
        const quantized = quantize(weight, { bits: 4 });
        return (x) => matmulPremultiplied(x, quantized);
      }),
    }),
  ],
  ...[0, 0.5, 0.8].map((alpha): [string, string, Made] => [
    `(4) SmoothQuant, α = ${alpha}`,
    "8",
    () => ({
      model: withScheme(({ weight }, name) => {
        const quantized = smoothQuantize(weight, calibration().get(name)!.ranges, { alpha });
        return (x) => matmulSmooth(x, quantized);
      }),
    }),
  ]),
];

/** Returns the bits per value of the quantized layers. */
function bitsOf(model: nn.LanguageModel, said: string): string {
  if (said !== "") return said;
  const quantized = model.modules().flatMap((layer) => (layer instanceof nn.QuantizedLinear ? [layer.weight] : []));
  const [bytes, size] = [
    quantized.reduce((sum, w) => sum + w.byteLength, 0),
    quantized.reduce((sum, w) => sum + w.size, 0),
  ];
  return String(Number(((8 * bytes) / size).toFixed(3)));
}

interface Row {
  readonly loss: number;
  readonly bits: string;
  /** The format that narrow layers use instead. */
  readonly note: string;
}

async function compute([name, bits, make]: (typeof rows)[number]): Promise<Row> {
  const { model, formats } = make();
  const note = formats !== undefined && formats !== name && !name.startsWith("affine") ? ` (${formats})` : "";
  return { loss: await lossOf(model), bits: bitsOf(model, bits), note };
}

/** Computes a row in a separate process. */
async function computeApart(name: string, threads: number): Promise<Row> {
  const command = [process.execPath, import.meta.path, ...process.argv.slice(2), "--row", name];
  const env = { ...process.env, ORCHARD_CPU_THREADS: String(threads) };
  const child = Bun.spawn(command, { env, stdout: "pipe", stderr: "inherit" });
  const said = await new Response(child.stdout).text();
  if ((await child.exited) !== 0) throw new Error(`expected a loss of ${name}, but its process failed`);
  return JSON.parse(said.trim().split("\n").at(-1)!) as Row;
}

async function printTable(): Promise<void> {
  const count = newModel()
    .parameters()
    .reduce((sum, { size }) => sum + size, 0);
  console.log(`${count.toLocaleString("en")} parameters, ${windows} held-out windows of ${settings.context} tokens`);
  const begun = performance.now();
  const wanted = rows
    .map(([name]) => name)
    .filter((name) => chosen.length === 0 || name === "float32" || chosen.some((word) => name.includes(word)));
  const done = new Map<string, Row>();
  const atOnce = Math.max(1, Math.min(wanted.length, Math.floor(availableParallelism() / 2)));
  const work = async (name: string) => {
    done.set(name, await computeApart(name, Math.max(1, Math.floor(availableParallelism() / atOnce))));
    console.error(`${name}: ${done.get(name)!.loss.toFixed(4)}`); // shows progress, since a row takes some time
  };
  await inParallel(wanted, work, atOnce);
  const exact = done.get("float32")!.loss;
  const lines = wanted.map((name) => {
    const { loss, bits, note } = done.get(name)!;
    const beside = `${loss >= exact ? "+" : "−"}${Math.abs(loss - exact).toFixed(4)}`;
    return [`${name}${note}`, bits, loss.toFixed(4), beside];
  });
  console.log(table(["format or scheme", "bits a value", "held-out loss", "beside float32"], lines));
  console.log(`${((performance.now() - begun) / 1e3).toFixed(0)} s`);
}

if (flags.row === undefined) await printTable();
else console.log(JSON.stringify(await compute(rows.find(([name]) => name === flags.row)!)));
