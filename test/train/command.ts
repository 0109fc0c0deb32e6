/** `orchard train` and `orchard generate` as processes. */
import { beforeAll } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { readLog } from "../../src/train/listeners/log.ts";
import { testFolder } from "../support/folder.ts";
import { bunWords } from "../support/program.ts";
import { waitFor } from "../support/wait.ts";

export const tiny = [
  "--preset",
  "tiny",
  "--width",
  "16",
  "--context",
  "16",
  "--sample-tokens",
  "20",
  "--save-every",
  "5",
] as const;

export type Child = ReturnType<ReturnType<typeof trainingCommands>["start"]>;

/** Commands that work in a folder which is removed after the tests of the file. */
export function trainingCommands() {
  const { path: folder } = testFolder("train");
  const text = join(folder, "text.ts");
  beforeAll(async () => {
    const lines = Array.from({ length: 500 }, (_, k) => `export const value${k}: number = ${(k * 7919) % 1000};\n`);
    await Bun.write(text, lines.join(""));
  });
  const environment = { ...process.env, ORCHARD_BACKEND: "cpu", XDG_CACHE_HOME: join(folder, "cache") };

  const start = (words: readonly string[]) =>
    Bun.spawn([...bunWords, "src/cli/orchard.ts", ...words], {
      ...({ stdout: "pipe", stderr: "pipe" } as const),
      cwd: packageRoot,
      env: environment,
    });
  const orchard = async (...words: string[]) => outputOf(start(words));
  const train = (run: string, ...words: string[]) => orchard("train", text, ...tiny, "--out", run, ...words);
  let runs = 0;
  const newRun = () => join(folder, `run-${runs++}`);
  return { folder, text, environment, start, orchard, train, newRun };
}

/** The output of a process until it ends. */
export async function outputOf(child: Child) {
  const [out, err, exitCode] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { out, err, exitCode };
}

export const lossesOf = (run: string): number[] => {
  const losses = new Map(readLog(run).flatMap((event) => (event.kind === "step" ? [[event.step, event.loss]] : [])));
  return [...losses.values()];
};

export const pointsDrawn = (run: string): number =>
  /class="training" d="([^"]*)"/.exec(readFileSync(join(run, "loss.svg"), "utf8"))![1].split("L").length;

/** Waits until the log of a process has this step. Fails with its output if it ends before. */
export async function reaches(run: string, step: number, child: Child): Promise<void> {
  const log = join(run, "log.jsonl");
  const text = () => (existsSync(log) ? readFileSync(log, "utf8") : "");
  const isThere = () => text().includes(`"step","step":${step},`);
  const isThereOrEnded = async () => {
    if (isThere()) return true;
    if (child.exitCode === null || isThere()) return false;
    const { out, err, exitCode } = await outputOf(child);
    throw new Error(`the run ended with ${exitCode} before step ${step}:\n${out}\n${err}`);
  };
  try {
    await waitFor(`step ${step} in ${log}`, isThereOrEnded, { state: text });
  } catch (error) {
    child.kill("SIGKILL");
    throw error;
  }
}

/** Runs the command as a process with a limit on file sizes, in KB. */
export function limited(kilobytes: number, environment: Record<string, string | undefined>, ...words: string[]) {
  const script = `ulimit -f ${kilobytes}; trap "" XFSZ; exec "$0" "$@"`;
  const options = { cwd: packageRoot, env: environment };
  return Bun.spawnSync(["bash", "-c", script, ...bunWords, "src/cli/orchard.ts", ...words], options);
}
