// Embeds texts of 10 to 400 tokens, and images, with encoders of random weights, here, in transformers on PyTorch, and
// texts also in fastembed on onnxruntime: `bun bench/embeddings.ts [MiniLM] [base] [CLIP] [--count 1000] [--rounds 2]
// [--threads 1,2] [--against fastembed] [--python PROGRAM]`. fastembed is measured if the Python also has it and onnx.
//
// `--quick` embeds 64 of the 1,000 texts with MiniLM and 32 with the larger models: batches that are spread evenly over
// the sorted texts, so that a batch has as little padding as in the whole run. With `--threads 1,2` it takes about 90 s
// on two cores of a Xeon.
//
// Texts are lists of tokens, so tokenizers are not measured. Images are bytes of the model's size, so neither files nor
// resizing are measured. Both sort texts by length and run batches of 32 in float32, on the same number of threads
// (ORCHARD_CPU_THREADS). The programs run in turn. The best turn of each counts, in wall time and in CPU time, which
// other programs affect little; the spread is the slowest turn's time divided by the best's, here and there.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { presentPython } from "../scripts/fixtures/environment.ts";
import { cpuLibrary } from "../src/backend/cpu/loader.ts";
import { cpuInfo } from "../src/backend/cpu/report.ts";
import { nn, setBackend, type Tensor, tensor } from "../src/index.ts";
import { table } from "./support/measure.ts";
import { LineProcess } from "./support/pytorch.ts";

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    count: { type: "string", default: "1000" },
    rounds: { type: "string", default: "2" },
    quick: { type: "boolean", default: false },
    threads: { type: "string" },
    against: { type: "string", default: "transformers,fastembed" },
    python: { type: "string" },
  },
});

const pinned = (name: string) => presentPython(join(import.meta.dir, "..", "scripts", "fixtures", "models", name));
const python = flags.python ?? pinned("requirements.txt") ?? pinned("adapters.txt") ?? "python3";
/** The programs of bench/support, and the modules that each requires. */
const peers = {
  transformers: { program: "embeddings.py", modules: "transformers, torch", images: true },
  fastembed: { program: "embeddings_fastembed.py", modules: "fastembed, onnx, transformers, torch", images: false },
} as const;
type Peer = keyof typeof peers;
const canImport = (modules: string) =>
  Bun.spawnSync([python, "-c", `import ${modules}`], { stderr: "ignore" }).exitCode === 0;
const present = (Object.keys(peers) as Peer[]).filter(
  (peer) => flags.against.split(",").includes(peer) && canImport(peers[peer].modules),
);

/** The sizes of all-MiniLM-L6-v2, of BERT base, and of the image encoder of clip-vit-base-patch32. */
const models = {
  MiniLM: { hidden_size: 384, num_hidden_layers: 6, num_attention_heads: 12, intermediate_size: 1536 },
  base: { hidden_size: 768, num_hidden_layers: 12, num_attention_heads: 12, intermediate_size: 3072 },
  CLIP: {
    hidden_size: 768,
    num_hidden_layers: 12,
    num_attention_heads: 12,
    intermediate_size: 3072,
    image_size: 224,
    patch_size: 32,
    projection_dim: 512,
  },
} as const;
type Name = keyof typeof models;

const BATCH = 32;
const [shortest, longest] = [10, 400];
const allTexts = Array.from({ length: Number(flags.count) }, (_, text) => {
  const length = shortest + ((text * 7919) % (longest - shortest + 1));
  return Array.from({ length }, (_, at) => 1000 + ((text * 31 + at * 7919) % 20_000));
});

/** The texts that a model embeds: with `--quick`, batches in the middle of equal parts of the sorted texts. */
function textsOf(name: Name): number[][] {
  if (!flags.quick) return allTexts;
  const sorted = allTexts.toSorted((a, b) => a.length - b.length);
  const parts = name === "MiniLM" ? 2 : 1;
  return Array.from({ length: parts }, (_, part) => {
    const middle = Math.floor(((2 * part + 1) * sorted.length) / (2 * parts));
    return sorted.slice(Math.max(0, middle - BATCH / 2), middle + BATCH / 2);
  }).flat();
}

const side = models.CLIP.image_size;
const image = (index: number) =>
  tensor(
    Uint8Array.from({ length: 3 * side * side }, (_, at) => index * 31 + at * 7919),
    { shape: [3, side, side] },
  );

interface Turn {
  readonly wall: number;
  readonly processor: number;
  /** The first element of each vector. */
  readonly first: readonly number[];
}

async function ours(
  model: nn.Encoder | nn.VisionEncoder,
  texts: readonly number[][],
  images: readonly Tensor[],
): Promise<Turn> {
  const [begun, before] = [performance.now(), process.cpuUsage()];
  using vectors =
    "embedImages" in model ? await nn.embedImages(model, images, { batch: BATCH }) : await nn.embed(model, texts);
  const { user, system } = process.cpuUsage(before);
  const [wall, values] = [performance.now() - begun, Array.from(vectors.dataSync(), Number)];
  const first = texts.map((_, row) => values[row * vectors.shape[1]]);
  return { wall, processor: (user + system) / 1e3, first };
}

const commandOf = (peer: Peer) => [python, "-W", "ignore", join(import.meta.dir, "support", peers[peer].program)];

/** Runs a peer's program until it has written its part of the model's folder. */
function write(peer: Peer, folder: string, ...rest: readonly string[]): void {
  const env = { ...process.env, OMP_NUM_THREADS: "1" };
  const made = Bun.spawnSync([...commandOf(peer), "make", folder, ...rest], { env, stderr: "pipe" });
  if (made.exitCode !== 0) throw new Error(`the model can't be made:\n${made.stderr}`);
}

async function measure(name: Name, folder: string, threads: number): Promise<string[][]> {
  const texts = textsOf(name);
  const env = { OMP_NUM_THREADS: `${threads}` };
  write("transformers", folder, JSON.stringify(models[name]));
  const { model } = await nn.loadModel<nn.Encoder | nn.VisionEncoder>(folder);
  const isOfImages = "embedImages" in model;
  if (isOfImages) model.processor = new nn.ImageProcessor({ rescale: 1 / 255, mean: [0.5], std: [0.5] });
  const images = isOfImages ? texts.map((_, index) => image(index)) : [];
  const rivals = present.filter((peer) => !isOfImages || peers[peer].images);
  if (rivals.includes("fastembed")) write("fastembed", folder);
  const processes = rivals.map((peer) => new LineProcess([...commandOf(peer), "run", folder], env));
  for (const each of processes) await each.hear();
  const mine: Turn[] = [];
  const theirs = rivals.map((): Turn[] => []);
  for (let round = 0; round < Number(flags.rounds); round++) {
    mine.push(await ours(model, texts, images));
    for (const [at, each] of processes.entries())
      theirs[at].push(JSON.parse(await each.ask(JSON.stringify(isOfImages ? texts.length : texts))));
  }
  for (const each of processes) await each.close();
  for (const each of images) each.dispose();
  const tokens = isOfImages ? 0 : texts.reduce((sum, { length }) => sum + length, 0);
  return rivals.flatMap((peer, at) =>
    rowsOf([name, peer], [`${texts.length}`, tokens > 0 ? `${tokens}` : ""], mine, theirs[at]),
  );
}

function rowsOf(names: readonly string[], sizes: readonly string[], mine: Turn[], theirs: Turn[]): string[][] {
  const difference = Math.max(...mine[0].first.map((value, at) => Math.abs(value - theirs[0].first[at])));
  return (["wall", "processor"] as const).map((part) => {
    const times = [mine, theirs].map((turns) => turns.map((turn) => turn[part] / 1e3));
    const [here, there] = times.map((each) => Math.min(...each));
    const spread = times.map((each) => (Math.max(...each) / Math.min(...each)).toFixed(2)).join(", ");
    const seconds = [here, there].map((each) => each.toFixed(2));
    return [...names, part, ...sizes, ...seconds, (there / here).toFixed(2), spread, difference.toExponential(0)];
  });
}

if (present.length === 0) {
  console.log(`absent: python3 -m pip install transformers torch onnx fastembed; or --python, --against`);
  process.exit();
}
// the number of threads is fixed when the backend starts
const counts = flags.threads?.split(",") ?? [];
const arguments_ = process.argv.slice(2).filter((each, at, all) => ![each, all[at - 1]].includes("--threads"));
for (const count of counts) {
  const { exitCode } = Bun.spawnSync([process.execPath, import.meta.path, ...arguments_], {
    env: { ...process.env, ORCHARD_CPU_THREADS: count },
    stdio: ["ignore", "inherit", "inherit"],
  });
  if (exitCode !== 0) process.exit(exitCode);
}
if (counts.length > 0) process.exit();
setBackend("cpu");
const { isa, threads } = cpuInfo(cpuLibrary().native);
const folder = mkdtempSync(join(tmpdir(), "orchard-embeddings-"));
try {
  const rows: string[][] = [];
  for (const name of Object.keys(models) as Name[])
    if (positionals.length === 0 || positionals.includes(name))
      rows.push(...(await measure(name, join(folder, name), threads)));
  console.log(`${isa}, ${threads} threads, the best of ${flags.rounds} turns`);
  const heads = ["model", "against", "seconds", "inputs", "tokens", "here", "there", "speedup", "spread", "difference"];
  console.log(table(heads, rows));
} finally {
  rmSync(folder, { recursive: true });
}
