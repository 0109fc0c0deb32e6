/** Programs in separate processes with separate temporary folders, and the files that they write there. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { environmentFlag } from "../../src/core/environment.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { withoutAnnouncement } from "./child.ts";
import { testFolder } from "./folder.ts";
import { bunWords } from "./program.ts";

/** Whether Metal is tested: false with `ORCHARD_SKIP_METAL=1`. */
export const hasMetal = !environmentFlag("ORCHARD_SKIP_METAL");

export const newFolder = (): string => testFolder("recorded").path;

/** Names in the scope of programs, besides the package's exports. */
const prelude = `
  import * as orchard from ${JSON.stringify(join(packageRoot, "src", "index.ts"))};
  const { backward, flashAttention, metalContext, randn, sum, tensor, withBackend, zeros } = orchard;
  const operands = (shape = [1, 2, 16, 8]) => [0, 1, 2].map(() => randn(shape, { requiresGrad: true }));
`;

/** Command and environment of a program that runs on the cpu backend, unless it sets another. */
export function child(program: string, folder: string, settings: Record<string, string>) {
  return {
    command: [...bunWords, "-e", prelude + program],
    options: {
      cwd: packageRoot,
      env: { ...process.env, ORCHARD_BACKEND: "cpu", TMPDIR: folder, ...settings },
      stdout: "pipe",
      stderr: "pipe",
    } as const,
  };
}

/** Runs a program to its end. */
export function record(program: string, settings: Record<string, string>, folder: string = newFolder()) {
  const { command, options } = child(program, folder, settings);
  const { stdout, stderr, exitCode } = Bun.spawnSync(command, options);
  const said = withoutAnnouncement(stderr.toString()).trim();
  const file = (name: string): string => readFileSync(join(folder, name), "utf8");
  return { folder, exitCode, printed: stdout.toString().trim(), lines: said === "" ? [] : said.split("\n"), file };
}

/** The logs in a folder, which may contain other files. */
export const recordsIn = (folder: string): string[] =>
  existsSync(folder) ? readdirSync(folder).filter((name) => /\.(log|json)$/.test(name)) : [];
