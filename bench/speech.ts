// Runs Whisper base with random weights on a window of 30 s, here, in transformers on PyTorch, in CTranslate2, the
// engine of faster-whisper, and the encoder alone in onnxruntime:
// `bun bench/speech.ts [--tokens 100] [--rounds 3] [--engines pytorch,onnxruntime] [--python PROGRAM]`.
//
// Each round computes the encoder and the given number of greedy tokens, in float32 on the same number of threads
// (ORCHARD_CPU_THREADS). With two threads, CTranslate2 may hang: leave it out of --engines. Features and the rules of
// timestamps are not measured. The programs run in turn. The best turn of each counts, in wall time and in CPU time,
// which other programs affect little.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { mediaToo, presentPython } from "../scripts/fixtures/environment.ts";
import { cpuLibrary } from "../src/backend/cpu/loader.ts";
import { cpuInfo } from "../src/backend/cpu/report.ts";
import { Generator, nn, noGrad, setBackend, type Tensor, tensor } from "../src/index.ts";
import { decodeWindows } from "../src/nn/speech/decode.ts";
import { table } from "./support/measure.ts";
import { LineProcess } from "./support/pytorch.ts";

const { values: flags } = parseArgs({
  options: {
    tokens: { type: "string", default: "100" },
    rounds: { type: "string", default: "3" },
    engines: { type: "string", default: "pytorch,onnxruntime,ctranslate2" },
    python: { type: "string" },
  },
});

const python = flags.python ?? presentPython(mediaToo) ?? "python3";
const sizes = {
  vocab_size: 51_865,
  d_model: 512,
  encoder_layers: 6,
  decoder_layers: 6,
  encoder_attention_heads: 8,
  decoder_attention_heads: 8,
  encoder_ffn_dim: 2048,
  decoder_ffn_dim: 2048,
  num_mel_bins: 80,
};
/** The Python packages of each engine. */
const packages: Readonly<Record<string, string>> = {
  pytorch: "torch",
  onnxruntime: "onnxruntime, onnxscript",
  ctranslate2: "ctranslate2",
};
const [PROMPT, SECONDS] = [[50_258, 50_363], 30];

interface Turn {
  readonly wall: number;
  readonly processor: number;
}

function features(): Tensor {
  const values = Float32Array.from({ length: 80 * 3000 }, (_, at) => ((at * 7919) % 1000) / 1000 - 0.5);
  return tensor(values, { shape: [1, 80, 3000] });
}

interface Turns {
  readonly whole: Turn;
  readonly encoder: Turn;
}

async function ours(model: nn.Whisper): Promise<Turns> {
  const [begun, before] = [performance.now(), process.cpuUsage()];
  const since = (): Turn => {
    const { user, system } = process.cpuUsage(before);
    return { wall: performance.now() - begun, processor: (user + system) / 1e3 };
  };
  using states = noGrad(() => model.encode(features()));
  const encoder = since();
  const { tokens } = (
    await decodeWindows(model, states, [PROMPT], {
      temperature: 0,
      rule: () => {},
      maxTokens: Number(flags.tokens),
      endToken: -1,
      startLength: 1,
      noSpeechToken: undefined,
      generator: new Generator(1),
      signal: undefined,
    })
  )[0];
  if (tokens.length !== Number(flags.tokens)) throw new Error(`expected ${flags.tokens} tokens, got ${tokens.length}`);
  return { whole: since(), encoder };
}

const best = (turns: readonly Turn[], part: keyof Turn): number => Math.min(...turns.map((turn) => turn[part])) / 1e3;

async function measure(folder: string, threads: number): Promise<string[][]> {
  const program = [python, "-W", "ignore", join(import.meta.dir, "support", "speech.py")];
  const env = { OMP_NUM_THREADS: `${threads}` };
  const made = Bun.spawnSync([...program, "make", folder, JSON.stringify(sizes)], {
    env: { ...process.env, ...env },
    stderr: "pipe",
  });
  if (made.exitCode !== 0) throw new Error(`the model can't be made:\n${made.stderr}`);
  const { model } = await nn.loadModel<nn.Whisper>(folder);
  const engines = flags.engines.split(",").filter((engine) => {
    const needed = packages[engine];
    const isThere = Bun.spawnSync([python, "-c", `import ${needed}`], { stderr: "ignore" }).exitCode === 0;
    if (!isThere) console.log(`absent: ${needed} (python3 -m pip install ${needed?.replace(",", "")})`);
    return isThere;
  });
  const peers = engines.map((engine) => new LineProcess([...program, "run", folder, engine, flags.tokens], env));
  for (const peer of peers) await peer.hear();
  const [mine, theirs]: [Turns[], Turn[][]] = [[], peers.map(() => [])];
  for (let round = 0; round < Number(flags.rounds); round++) {
    mine.push(await ours(model));
    for (const [at, peer] of peers.entries()) theirs[at].push(JSON.parse(await peer.ask("")));
  }
  for (const peer of peers) await peer.close();
  return (["wall", "processor"] as const).flatMap((part) =>
    engines.map((engine, at) => {
      const isEncoder = engine === "onnxruntime";
      const own = mine.map(({ whole, encoder }) => (isEncoder ? encoder : whole));
      const [here, there] = [best(own, part), best(theirs[at], part)];
      const factors = [here, there].map((seconds) => (seconds / SECONDS).toFixed(3));
      return [
        `${engine}${isEncoder ? " (encoder)" : ""}, ${part}`,
        here.toFixed(2),
        there.toFixed(2),
        ...factors,
        (there / here).toFixed(2),
      ];
    }),
  );
}

const isPresent = Bun.spawnSync([python, "-c", "import transformers, torch"], { stderr: "ignore" }).exitCode === 0;
if (!isPresent) {
  console.log("absent: transformers (python3 -m pip install transformers torch; --python)");
  process.exit();
}
setBackend("cpu");
const { isa, threads } = cpuInfo(cpuLibrary().native);
const folder = mkdtempSync(join(tmpdir(), "orchard-speech-"));
try {
  const rows = await measure(folder, threads);
  console.log(`${isa}, ${threads} threads, a window and ${flags.tokens} tokens, the best of ${flags.rounds} turns`);
  console.log(table(["peer", "here s", "peer s", "here / real time", "peer / real time", "speedup"], rows));
} finally {
  rmSync(folder, { recursive: true });
}
