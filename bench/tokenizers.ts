// Measures the CPU time of loading a tokenizer of 262,144 tokens and 514,000 merges, like Gemma's, in a new process:
// the first load, which packs it into the cache, and later loads, compared with only importing the library.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { packageRoot } from "../src/core/paths.ts";
import { table } from "./support/measure.ts";

const [TOKENS, MERGES, ROUNDS] = [262_144, 514_000, 7];
const folder = mkdtempSync(join(tmpdir(), "orchard-tokenizers-"));
const source = JSON.stringify(join(packageRoot, "src", "index.ts"));
const programs = {
  import: `import ${source};`,
  load: `import { text } from ${source};
if (text.loadTokenizer(${JSON.stringify(folder)}).encode("hello world").length === 0) throw new Error("no tokens");`,
};

/** Words that are merged from shorter ones, as in a trained byte-pair encoding. */
function vocabulary() {
  let seed = 7;
  const draw = (limit: number) => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return Math.floor((seed / 2 ** 32) * limit);
  };
  const words = [..."▁abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,;:!?"];
  const ids = new Map(words.map((word, at) => [word, at]));
  const merges: [string, string][] = [];
  while (words.length < TOKENS || merges.length < MERGES) {
    const [left, right] = [words[draw(words.length)], words[draw(words.length)]];
    const word = left + right;
    if (word.length > 14 || (!ids.has(word) && words.length >= TOKENS)) {
      if (words.length >= TOKENS) merges.push([left, right]); // its result is no token, so it never applies
      continue;
    }
    if (!ids.has(word)) ids.set(word, words.push(word) - 1);
    merges.push([left, right]);
  }
  return { vocab: Object.fromEntries(ids), merges };
}

/** Returns CPU milliseconds. */
function run(program: string): number {
  const path = join(folder, "program.ts");
  const env = { ...process.env, XDG_CACHE_HOME: join(folder, "cache") };
  const { exitCode, stderr, resourceUsage } = Bun.spawnSync([process.execPath, path], { env });
  if (exitCode !== 0) throw new Error(`${program} failed: ${stderr}`);
  return Number(resourceUsage.cpuTime.total) / 1000;
}

async function times(program: keyof typeof programs, count: number): Promise<number[]> {
  await Bun.write(join(folder, "program.ts"), programs[program]);
  return Array.from({ length: count }, () => run(program));
}

try {
  mkdirSync(folder, { recursive: true });
  const sections = { normalizer: null, pre_tokenizer: null, post_processor: null, decoder: { type: "Fuse" } };
  const json = { ...sections, added_tokens: [], model: { type: "BPE", ...vocabulary() } };
  await Bun.write(join(folder, "tokenizer.json"), JSON.stringify(json, null, 2));
  const measured = {
    "import alone": await times("import", ROUNDS),
    "import and first load": await times("load", 1),
    "import and later loads": await times("load", ROUNDS),
  };
  const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[values.length >> 1];
  const rows = Object.entries(measured).map(([name, values]) => [
    name,
    ...[median(values), Math.min(...values), Math.max(...values)].map((time) => time.toFixed(0)),
  ]);
  console.log(`A tokenizer of ${TOKENS} tokens, milliseconds of processor time\n`);
  console.log(table(["program", "median", "fastest", "slowest"], rows));
} finally {
  rmSync(folder, { recursive: true });
}
