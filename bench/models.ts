// Measures generation with a Llama of 1.1 billion random parameters, in Orchard and in other libraries: `bun
// bench/models.ts [q4_0] [q8_0] [q4_K] [bfloat16] [batch] [start] [--folder FOLDER] [--llama FOLDER] [--rounds 3]
// [--processor]`.
//
// The model is created once, in --folder: a Hugging Face folder in bfloat16, and GGUF files.
//
// - q4_0, q8_0, q4_K: a prompt of 512 tokens and 32 generated ones, compared with llama.cpp (the npm package
// node-llama-cpp in FOLDER/node_modules)
// - bfloat16: the same, compared with transformers on PyTorch, if python3 has it
// - batch: 8 concurrent requests, compared with one
// - start: a process that imports the installed package, from its start to the first token, compared with reading the
// file; both from the system's cache
//
// The programs run in turn, on the same number of threads, and the best turn of each counts. With --processor, CPU time
// is measured, which other programs affect little: on one thread it equals the time of a machine with one core.

import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import packageFile from "../package.json";
import { cpuLibrary } from "../src/backend/cpu/loader.ts";
import { cpuInfo } from "../src/backend/cpu/report.ts";
import { Generator, io, nn, noGrad, quantizeGgml, randn, setBackend, type Tensor, toDType } from "../src/index.ts";
import type { GgufInput } from "../src/io/gguf/encode.ts";
import { buildHere, installPackage } from "./support/installed.ts";
import { table } from "./support/measure.ts";
import { LineProcess } from "./support/pytorch.ts";

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    folder: { type: "string", default: join(tmpdir(), "orchard-llama-1b") },
    llama: { type: "string", default: "." },
    python: { type: "string", default: "python3" },
    rounds: { type: "string", default: "3" },
    processor: { type: "boolean", default: false },
  },
});

/** The sizes of TinyLlama 1.1B, for any number of layers. */
const sizes = { width: 2048, hidden: 5632, layers: 22, heads: 32, keyValueHeads: 4, vocabulary: 32_000 } as const;
const [PROMPT, TOKENS] = [512, 32];
const promptOf = (length: number): number[] =>
  Array.from({ length }, (_, at) => (at * 7919 + (at >> 3)) % sizes.vocabulary);
const formats = ["q4_0", "q8_0", "q4_K"] as const;
type Format = (typeof formats)[number];
const gguf = (format: string): string => join(flags.folder, `${format}.gguf`);

const config = {
  model_type: "llama",
  architectures: ["LlamaForCausalLM"],
  hidden_act: "silu",
  rms_norm_eps: 1e-5,
  vocab_size: sizes.vocabulary,
  max_position_embeddings: 2048,
  hidden_size: sizes.width,
  intermediate_size: sizes.hidden,
  num_hidden_layers: sizes.layers,
  num_attention_heads: sizes.heads,
  num_key_value_heads: sizes.keyValueHeads,
  tie_word_embeddings: false,
  rope_theta: 10_000,
  torch_dtype: "bfloat16",
  bos_token_id: 1,
  eos_token_id: 2,
};

/** The name, llama.cpp's name and the shape of the weights of a block; all blocks have the same values. */
function blockWeights(): (readonly [string, string, Tensor])[] {
  const { width, hidden, heads, keyValueHeads } = sizes;
  const generator = new Generator(3);
  const few = (width / heads) * keyValueHeads;
  const matrix = (...[rows, columns]: [number, number]) =>
    randn([rows, columns], { generator }).mul(0.7 / Math.sqrt(columns));
  const ones = () => randn([width], { generator }).mul(0.1).add(1);
  return [
    ["input_layernorm", "attn_norm", ones()],
    ["self_attn.q_proj", "attn_q", matrix(width, width)],
    ["self_attn.k_proj", "attn_k", matrix(few, width)],
    ["self_attn.v_proj", "attn_v", matrix(few, width)],
    ["self_attn.o_proj", "attn_output", matrix(width, width)],
    ["post_attention_layernorm", "ffn_norm", ones()],
    ["mlp.gate_proj", "ffn_gate", matrix(hidden, width)],
    ["mlp.up_proj", "ffn_up", matrix(hidden, width)],
    ["mlp.down_proj", "ffn_down", matrix(width, hidden)],
  ];
}

/** Returns every weight under both names. */
function* weights(): Iterable<readonly [string, string, Tensor]> {
  const { width, vocabulary, layers } = sizes;
  const generator = new Generator(4);
  yield ["model.embed_tokens", "token_embd", randn([vocabulary, width], { generator })];
  yield ["model.norm", "output_norm", randn([width], { generator }).mul(0.1).add(1)];
  yield ["lm_head", "output", randn([vocabulary, width], { generator }).mul(1 / Math.sqrt(width))];
  const block = blockWeights();
  for (let layer = 0; layer < layers; layer++)
    for (const [name, ggufName, x] of block) yield [`model.layers.${layer}.${name}`, `blk.${layer}.${ggufName}`, x];
}
type Iterable<T> = globalThis.Generator<T>;

async function makeModel(): Promise<void> {
  if (existsSync(join(flags.folder, "done"))) return;
  mkdirSync(flags.folder, { recursive: true });
  const all = noGrad(() => [...weights()]);
  const once = <T>(body: (x: Tensor) => T) => {
    const known = new Map<Tensor, T>();
    return (x: Tensor): T => {
      if (!known.has(x)) known.set(x, body(x));
      return known.get(x)!;
    };
  };
  await Bun.write(join(flags.folder, "config.json"), JSON.stringify(config));
  const narrow = once((x) => toDType(x, "bfloat16") as Tensor);
  const state = Object.fromEntries(all.map(([name, , x]) => [`${name}.weight`, narrow(x)]));
  await io.saveSafetensors(join(flags.folder, "model.safetensors"), state, { metadata: { format: "pt" } });
  for (const format of formats) {
    const packed = once((x) => (x.rank === 2 ? quantizeGgml(x, format) : x));
    const tensors = Object.fromEntries(all.map(([, name, x]) => [`${name}.weight`, packed(x)]));
    await io.saveGguf(gguf(format), tensors, { metadata: ggufMetadata() });
  }
  await Bun.write(join(flags.folder, "done"), "");
}

function ggufMetadata(): Readonly<Record<string, GgufInput>> {
  const uint32 = (value: number) => ({ type: "uint32", value }) as const;
  const float32 = (value: number) => ({ type: "float32", value }) as const;
  const { width, hidden, layers, heads, keyValueHeads, vocabulary } = sizes;
  const tokens = Array.from({ length: vocabulary }, (_, token) => `t${token}`);
  return {
    "general.architecture": "llama",
    "llama.context_length": uint32(2048),
    "llama.embedding_length": uint32(width),
    "llama.feed_forward_length": uint32(hidden),
    "llama.block_count": uint32(layers),
    "llama.attention.head_count": uint32(heads),
    "llama.attention.head_count_kv": uint32(keyValueHeads),
    "llama.attention.layer_norm_rms_epsilon": float32(1e-5),
    "llama.rope.dimension_count": uint32(width / heads),
    "llama.rope.freq_base": float32(10_000),
    "llama.vocab_size": uint32(vocabulary),
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "gpt-2",
    "tokenizer.ggml.tokens": { type: "array", of: "string", value: tokens },
    "tokenizer.ggml.token_type": { type: "array", of: "int32", value: tokens.map(() => 1) },
    "tokenizer.ggml.merges": { type: "array", of: "string", value: [] },
    "tokenizer.ggml.bos_token_id": uint32(1),
    "tokenizer.ggml.eos_token_id": uint32(2),
  };
}

interface Times {
  /** Milliseconds of the prompt, and of the tokens after it. */
  readonly prompt: number;
  readonly rest: number;
}
interface Run extends Times {
  /** CPU milliseconds of all threads. */
  readonly processor: Times;
}

const clock = (): number => (flags.processor ? used() : performance.now());
const used = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e3;
};

async function generated(model: nn.LanguageModel): Promise<Run> {
  const [begun, usedBefore] = [performance.now(), used()];
  let [first, usedFirst, count] = [0, 0, 0];
  for await (const _ of nn.generate(model, promptOf(PROMPT), { temperature: 0, maxTokens: TOKENS + 1 }))
    if (count++ === 0) [first, usedFirst] = [performance.now(), used()];
  const processor = { prompt: usedFirst - usedBefore, rest: used() - usedFirst };
  return { prompt: first - begun, rest: performance.now() - first, processor };
}

const rounds = Number(flags.rounds);
const ask = async (peer: LineProcess): Promise<Run> =>
  JSON.parse(await peer.ask(JSON.stringify({ tokens: promptOf(PROMPT), count: TOKENS })));
const least = (runs: readonly Run[], part: keyof Times): number =>
  Math.min(...runs.map((run) => (flags.processor ? run.processor : run)[part]));

/** Runs in alternation with another program. */
async function beside(name: string, model: nn.LanguageModel, peer: LineProcess | undefined): Promise<void> {
  await peer?.hear();
  const [ours, theirs]: [Run[], Run[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    ours.push(await generated(model));
    if (peer) theirs.push(await ask(peer));
  }
  await peer?.close();
  const row = (part: keyof Times, count: number) => {
    const [mine, other] = [ours, theirs].map((runs) => (count * 1000) / least(runs, part));
    return [mine.toFixed(1), peer ? other.toFixed(1) : "", peer ? (mine / other).toFixed(2) : ""];
  };
  rows.push([`${name}, a prompt of ${PROMPT}`, ...row("prompt", PROMPT)]);
  rows.push([`${name}, a token after another`, ...row("rest", TOKENS)]);
}

async function besideLlama(format: Format): Promise<void> {
  const isThere = existsSync(join(flags.llama, "node_modules", "node-llama-cpp"));
  if (!isThere) console.log("absent: llama.cpp (npm install node-llama-cpp in a folder, and --llama FOLDER)");
  const program = join(import.meta.dir, "support", "llama_cpp.mjs");
  const { model } = await nn.loadModel(gguf(format), { precision: "fast" });
  const peer = isThere ? new LineProcess(["node", program, flags.llama, gguf(format), `${threads}`]) : undefined;
  await beside(`${format}, llama.cpp`, model, peer);
}

async function besideTransformers(): Promise<void> {
  const check = Bun.spawnSync([flags.python, "-c", "import transformers, torch"], { stderr: "ignore" });
  if (check.exitCode !== 0) console.log("absent: transformers (python3 -m pip install transformers torch; --python)");
  const { model } = await nn.loadModel(flags.folder);
  const program = join(import.meta.dir, "support", "hugging_face.py");
  const command = [flags.python, "-W", "ignore", program, flags.folder];
  const peer = check.exitCode === 0 ? new LineProcess(command, { OMP_NUM_THREADS: `${threads}` }) : undefined;
  await beside("bfloat16, transformers", model, peer);
}

/** Returns tokens per second with this many concurrent requests, each with a different prompt. */
async function requests(model: nn.LanguageModel, count: number): Promise<number> {
  using batcher = new nn.Batcher(model, { slots: 8 });
  const texts = Array.from({ length: count }, (_, at) => [at + 1, ...promptOf(15)]);
  const times = await Promise.all(
    texts.map(async (tokens) => {
      const found: number[] = [];
      for await (const _ of batcher.submit(tokens, { temperature: 0, maxTokens: TOKENS })) found.push(clock());
      return found;
    }),
  );
  const begun = Math.max(...times.map((each) => each[0])); // all prompts have been read
  const after = times.flatMap((each) => each.filter((time) => time > begun));
  return (after.length * 1000) / (Math.max(...after) - begun);
}

async function measureBatch(format: Format): Promise<void> {
  const { model } = await nn.loadModel(gguf(format), { precision: "fast" });
  const [one, eight]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    one.push(await requests(model, 1));
    eight.push(await requests(model, 8));
  }
  const [alone, together] = [Math.max(...one), Math.max(...eight)];
  rows.push([`${format}, 8 requests beside one`, together.toFixed(1), alone.toFixed(1), (together / alone).toFixed(2)]);
}

/** Returns the milliseconds of reading a file through a buffer. */
function reading(path: string): number {
  const begun = clock();
  const buffer = new Uint8Array(2 ** 23);
  const file = openSync(path, "r");
  while (readSync(file, buffer) > 0);
  closeSync(file);
  return clock() - begun;
}

/** A program that prints the milliseconds from its start to the first token. */
const firstToken = `import { nn, setBackend } from ${JSON.stringify(packageFile.name)};
setBackend("cpu");
const { model } = await nn.loadModel(process.argv[2], { precision: "fast" });
for await (const _ of nn.generate(model, [1], { temperature: 0, maxTokens: 1 })) {
  const { user, system } = process.cpuUsage();
  console.log(${flags.processor} ? (user + system) / 1e3 : performance.now());
}
`;

async function measureStarts(chosenFormats: readonly Format[]): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "orchard-start-"));
  try {
    await installPackage(folder);
    const program = join(folder, "first.ts");
    await Bun.write(program, firstToken);
    for (const format of chosenFormats) await measureStart(program, format);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function measureStart(program: string, format: Format): Promise<void> {
  const [reads, firsts]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    reads.push(reading(gguf(format)));
    const env = { ...process.env, ...buildHere };
    const child = Bun.spawn([process.execPath, program, gguf(format)], { stdout: "pipe", env });
    firsts.push(Number(await new Response(child.stdout).text()));
  }
  const [read, first] = [Math.min(...reads), Math.min(...firsts)];
  const megabytes = (statSync(gguf(format)).size / 1e6).toFixed(0);
  const name = `${format}, ms to the first token beside reading ${megabytes} MB`;
  rows.push([name, first.toFixed(0), read.toFixed(0), (first / read).toFixed(2)]);
}

setBackend("cpu");
const rows: string[][] = [];
const { isa, threads } = cpuInfo(cpuLibrary().native);
await makeModel();
const chosen = (part: string) => positionals.length === 0 || positionals.includes(part);
for (const format of formats) if (chosen(format)) await besideLlama(format);
if (chosen("bfloat16")) await besideTransformers();
if (chosen("batch")) for (const format of formats) await measureBatch(format);
if (chosen("start")) await measureStarts(formats);
const what = flags.processor ? "processor time" : "time";
console.log(`${isa}, ${threads} threads, the best ${what} of ${rounds} turns`);
console.log(table(["tokens a second", "here", "the other", "ratio"], rows));
