/** The cpu dylib survives hostile calls: each is rejected with a status, or stays within its operands. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { environment } from "../../../src/core/environment.ts";
import { packageRoot } from "../../../src/core/paths.ts";
import { withoutAnnouncement } from "../../support/child.ts";
import { testFolder } from "../../support/folder.ts";
import { bunWords } from "../../support/program.ts";
import { repeats } from "../../support/repeats.ts";

const program = "test/backend/cpu/storm/child.ts";

/** The program's output: how often each function ran and was rejected, and the call that took most processor time. */
interface Answers {
  readonly answers: readonly { readonly name: string; readonly ran: number; readonly refused: number }[];
  readonly slowest: { readonly number: number; readonly seconds: number };
}

const { file } = testFolder("storm");
const usual = `${repeats({ usual: 75_000, all: 300_000 })}:1`;
const [calls = 0, seed = 1] = (environment("ORCHARD_CPU_STORM") ?? usual).split(":").map(Number);

test(`${calls} hostile calls with seed ${seed} return a status`, async () => {
  const progress = file("progress");
  await Bun.write(progress, new Float64Array(1));
  const child = Bun.spawn([...bunWords, program, `${seed}`, "0", `${calls}`, progress], {
    cwd: packageRoot,
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  await child.exited;
  const [number] = new Float64Array(await Bun.file(progress).arrayBuffer());
  const replay = `bun ${program} ${seed} ${number} 1 ${join("some", "file")}`;
  expect({ replay, code: child.exitCode, signal: child.signalCode, error: withoutAnnouncement(err).trim() }).toEqual({
    replay,
    code: 0,
    signal: null,
    error: "",
  });
  const { answers, slowest } = JSON.parse(out) as Answers;
  const total = answers.reduce((sum, { ran, refused }) => sum + ran + refused, 0);
  expect(total).toBe(calls);
  if (calls >= 50_000) expect(answers.filter(({ ran, refused }) => ran === 0 || refused === 0)).toEqual([]);
  expect([slowest, slowest.seconds < 20]).toEqual([slowest, true]);
}, 1_200_000);
