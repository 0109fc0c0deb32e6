// Measures quantized weights on the cpu: `bun bench/quantized_speed.ts [products] [tokens] [--llama FOLDER] [--rounds
// 12] [--threads N] [--processor]`.
//
// products: one row of x, in GB/s of compressed bytes, compared with a plain read of the same number of bytes in the
// same round, and with MLX's `quantized_matmul` if python3 has MLX. The matrices are used one after the other and
// together exceed every cache, as the weights of a model do. With --processor, CPU time is measured, which other
// programs affect little: on one thread it equals the time of a machine with one core.
//
// tokens: a Llama with random weights, saved by io.saveGguf, generates text in Orchard and in llama.cpp (the npm
// package node-llama-cpp in FOLDER/node_modules) on the same number of threads. Formats can also be selected by name.

import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { quantAlone } from "../scripts/fixtures/environment.ts";
import { configure, cpuLibrary } from "../src/backend/cpu/loader.ts";
import { cpuInfo } from "../src/backend/cpu/report.ts";
import { ByteTokenizer } from "../src/data/byte_tokenizer.ts";
import {
  Generator,
  io,
  matmul,
  nn,
  noGrad,
  QuantizedTensor,
  quantizedMatmul,
  quantizeGgml,
  quantizeInt4,
  randn,
  setBackend,
  type Tensor,
} from "../src/index.ts";
import { ggufMetadata } from "../src/train/gguf_metadata.ts";
import { toGgufWeights } from "../src/train/gguf_names.ts";
import { presets, type Settings } from "../src/train/settings.ts";
import { table } from "./support/measure.ts";
import { LineProcess, PyTorch } from "./support/pytorch.ts";

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    llama: { type: "string", default: "." },
    rounds: { type: "string", default: "12" },
    threads: { type: "string" },
    processor: { type: "boolean", default: false },
    width: { type: "string", default: "1024" },
  },
});
const chosen = (part: string) =>
  !positionals.some((word) => word === "products" || word === "tokens") || positionals.includes(part);
const rounds = Number(flags.rounds);
setBackend("cpu");
if (flags.threads) configure(cpuLibrary().native, "threads", flags.threads);
const { isa, threads } = cpuInfo(cpuLibrary().native);
console.log(`${isa}, ${threads} threads, the least of ${rounds} turns`);

const used = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e3;
};
const clock = flags.processor ? used : () => performance.now();

/** Returns the milliseconds of one product. */
function timed<Weights>(all: readonly Weights[], product: (weights: Weights) => Tensor): number {
  const begun = clock();
  for (const weights of all) product(weights).dispose();
  return (clock() - begun) / all.length;
}

/** More bytes than a processor's caches hold. */
const UNCACHED_BYTES = 160e6;

/** A square matrix that repeats one block of rows, since quantizing all of it would take long. */
function weightsOf(format: "q4_0" | "q8_0" | "q4_K" | "affine 4", size: number): QuantizedTensor {
  const some = randn([256, size]);
  const quantized = format === "affine 4" ? quantizeInt4(some, { groupSize: 64 }) : quantizeGgml(some, format);
  const { packed, scales, biases } = quantized.parts;
  const all = (part: Tensor | undefined) => part?.expand([size / 256, ...part.shape]).reshape([size, part.shape[1]]);
  return new QuantizedTensor(quantized.format, [size, size], quantized.dtype, {
    packed: all(packed)!,
    scales: all(scales),
    biases: all(biases),
  });
}

async function measureProducts(): Promise<void> {
  const mlx = PyTorch.start("quantized.py", threads, { requirements: quantAlone, module: "mlx.core" });
  if (mlx === undefined) console.log("absent: MLX (python3 -m pip install 'mlx[cpu]')");
  else await mlx.hear();
  const rows: string[][] = [];
  for (const size of [4096, 8192]) {
    const x = randn([1, size]);
    for (const format of ["q4_0", "q8_0", "q4_K", "affine 4"] as const) {
      const w = weightsOf(format, size);
      const copies = Math.ceil(UNCACHED_BYTES / w.byteLength);
      const all = [w, ...Array.from({ length: copies - 1 }, () => copyOf(w))];
      const plain = all.map(() => randn([Math.round(w.byteLength / 4 / size), size]).T); // the same size in float32
      const least = { read: Infinity, exact: Infinity, fast: Infinity, mlx: Infinity };
      for (let round = 0; round < rounds; round++) {
        least.read = Math.min(
          least.read,
          timed(plain, (weights) => matmul(x, weights)),
        );
        for (const precision of ["exact", "fast"] as const)
          least[precision] = Math.min(
            least[precision],
            timed(all, (weights) => quantizedMatmul(x, weights, { precision })),
          );
        if (mlx && format === "affine 4") least.mlx = Math.min(least.mlx, Number(await mlx.ask(`${size}`)));
      }
      const speed = (ms: number) => (Number.isFinite(ms) ? (w.byteLength / ms / 1e6).toFixed(1) : "");
      const share = (ms: number) => (least.read / ms).toFixed(2);
      const { read, exact, fast } = least;
      const beside = mlx && format === "affine 4" ? [exact, fast].map((ms) => (least.mlx / ms).toFixed(2)) : ["", ""];
      rows.push([
        `${format}, ${size}²`,
        speed(read),
        speed(exact),
        share(exact),
        speed(fast),
        share(fast),
        ...[speed(least.mlx), beside.join(" "), ""].slice(0, 2),
      ]);
      for (const each of [...all, ...plain]) each.dispose();
    }
  }
  const head = ["weights", "read GB/s", "exact", "of read", "fast", "of read", "MLX", "MLX's time over ours"];
  console.log(table(head, rows));
  await mlx?.close();
}

const sizes = { layers: 8, heads: 16, width: Number(flags.width), context: 1024 } as const;
const PROMPT = 512;
const TOKENS = 48;

/** Copies to separate memory, so that its bytes are read from memory. */
function copyOf(weights: QuantizedTensor): QuantizedTensor;
function copyOf(weights: Tensor | QuantizedTensor): Tensor | QuantizedTensor;
function copyOf(weights: Tensor | QuantizedTensor): Tensor | QuantizedTensor {
  if (!QuantizedTensor.isQuantized(weights)) return weights.clone();
  const { format, shape, dtype } = weights;
  const { packed, scales, biases } = weights.parts;
  const parts = { packed: packed.clone(), scales: scales?.clone(), biases: biases?.clone() };
  return new QuantizedTensor(format, shape, dtype, parts);
}

/** A Llama of 100 million weights at width 1,024; all blocks have the same values. */
function makeLlama(format: "q4_0" | "q8_0" | "q4_K"): { model: nn.Llama; settings: Settings } {
  const settings: Settings = { ...presets.tiny, ...sizes, architecture: "llama" };
  const { layers, heads, width, context } = sizes;
  const options = { vocabularySize: 256, contextLength: context, heads, width, hidden: 3 * width, tied: true } as const;
  const generator = new Generator(3);
  const model = new nn.Llama({ ...options, layers, generator });
  const one = new nn.Llama({ ...options, layers: 1, generator });
  noGrad(() => {
    for (const parameter of one.parameters())
      if (parameter.rank === 2)
        parameter.copy_(randn([...parameter.shape], { generator }).mul(1.5 / Math.sqrt(parameter.shape[1])));
  });
  nn.quantizeModel(one, { format });
  const state = Object.entries(one.quantizedState());
  const all = state.flatMap(([name, tensor]) =>
    name.startsWith("blocks.0.")
      ? Array.from({ length: layers }, (_, at) => [name.replace("blocks.0.", `blocks.${at}.`), copyOf(tensor)] as const)
      : [[name, tensor] as const],
  );
  nn.loadQuantized(model, Object.fromEntries(all));
  return { model: model.eval(), settings };
}

interface Run {
  readonly prompt: number;
  readonly rest: number;
  readonly tokens: readonly number[];
}

async function generated(model: nn.Llama, prompt: readonly number[]): Promise<Run> {
  const tokens: number[] = [];
  const begun = performance.now();
  let first = 0;
  for await (const token of nn.generate(model, prompt, { temperature: 0, maxTokens: TOKENS + 1 })) {
    tokens.push(token);
    if (tokens.length === 1) first = performance.now();
  }
  return { prompt: first - begun, rest: performance.now() - first, tokens: tokens.slice(0, TOKENS) };
}

async function measureTokens(folder: string): Promise<void> {
  const isThere = existsSync(join(folder, "node_modules", "node-llama-cpp"));
  if (!isThere) console.log("absent: llama.cpp (npm install node-llama-cpp in a folder, and --llama FOLDER)");
  const prompt = Array.from({ length: PROMPT }, (_, at) => (at * 7919 + (at >> 3)) % 256);
  const made = mkdtempSync(join(tmpdir(), "orchard-llama-"));
  const rows: string[][] = [];
  const all = ["q4_0", "q8_0", "q4_K"] as const;
  const named = all.filter((format) => positionals.includes(format));
  for (const format of named.length > 0 ? named : all) {
    const { model, settings } = makeLlama(format);
    const path = join(made, `${format}.gguf`);
    const state = model.quantizedState();
    await io.saveGguf(path, toGgufWeights(settings, state), {
      metadata: ggufMetadata(settings, model, new ByteTokenizer()),
    });
    const program = join(import.meta.dir, "support", "llama_cpp.mjs");
    const peer = isThere ? new LineProcess(["node", program, folder, path, `${threads}`]) : undefined;
    await peer?.hear();
    const runs: Record<string, Run[]> = { exact: [], fast: [], "llama.cpp": [] };
    for (let round = 0; round < Math.max(2, rounds / 4); round++) {
      for (const precision of ["exact", "fast"] as const) {
        for (const layer of model.modules())
          if (layer instanceof nn.QuantizedLinear || layer instanceof nn.QuantizedEmbedding)
            layer.precision = precision;
        runs[precision].push(await generated(model, prompt));
      }
      if (peer) runs["llama.cpp"].push(JSON.parse(await peer.ask(JSON.stringify({ tokens: prompt, count: TOKENS }))));
    }
    await peer?.close();
    const theirs = runs["llama.cpp"][0]?.tokens;
    for (const [name, texts] of Object.entries(runs)) {
      if (texts.length === 0) continue;
      const least = (part: "prompt" | "rest") => Math.min(...texts.map((each) => each[part]));
      const differs = texts[0].tokens.findIndex((token, at) => token !== theirs?.[at]);
      const same = theirs === undefined ? "" : `${differs < 0 ? TOKENS : differs} of ${TOKENS}`;
      const perSecond = [(PROMPT / least("prompt")) * 1e3, (TOKENS / least("rest")) * 1e3].map((v) => v.toFixed(1));
      rows.push([`${format}, ${name}`, ...perSecond, same]);
    }
  }
  rmSync(made, { recursive: true });
  console.log(table(["model", `prompt of ${PROMPT}, tokens/s`, "tokens/s", "first tokens as llama.cpp's"], rows));
}

if (chosen("products")) await measureProducts();
if (chosen("tokens")) await measureTokens(flags.llama);
