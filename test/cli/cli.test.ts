/** The `orchard` command: help, version and mistakes. The commands themselves are tested elsewhere. */
import { describe, expect, test } from "bun:test";
import packageFile from "../../package.json";
import { packageRoot } from "../../src/core/paths.ts";

/** Without the suite's pack of modules: help and usage errors load few modules, and the whole pack takes longer. */
function orchard(...words: string[]) {
  const { stdout, stderr, exitCode } = Bun.spawnSync([process.execPath, "src/cli/orchard.ts", ...words], {
    cwd: packageRoot,
  });
  return { out: stdout.toString(), err: stderr.toString(), exitCode };
}

const commands = [
  "doctor",
  "train",
  "generate",
  "quantize",
  "merge",
  "chat",
  "serve",
  "embed",
  "transcribe",
  "pull",
  "tune",
  "metal",
  "swift",
  "toolchain",
  "translate",
];

test("--help shows every command on stdout", () => {
  const { out, err, exitCode } = orchard("--help");
  expect([err, exitCode]).toEqual(["", 0]);
  for (const name of commands) expect(out).toMatch(new RegExp(`^  ${name}\\b.* {2}\\S`, "m"));
});

test("`orchard` without a command shows the help on stderr, and fails", () => {
  const { out, err, exitCode } = orchard();
  expect([out, exitCode]).toEqual(["", 1]);
  expect(err).toBe(orchard("--help").out);
});

test.each(commands)("%s --help explains the command", (name) => {
  const { out, err, exitCode } = orchard(name, "--help");
  expect([err, exitCode]).toEqual(["", 0]);
  expect(out).toStartWith(`Usage: orchard ${name}`);
});

test.each(commands)("%s: -h and the command `help` show the same as --help", (name) => {
  const { out } = orchard(name, "--help");
  expect(orchard(name, "-h")).toEqual({ out, err: "", exitCode: 0 });
  expect(orchard("help", name)).toEqual({ out, err: "", exitCode: 0 });
});

test.each(["-h", "help"])("%s shows the same as --help", (word) => {
  expect(orchard(word)).toEqual(orchard("--help"));
});

test("--version prints the package's version", () => {
  expect(orchard("--version")).toEqual({ out: `${packageFile.version}\n`, err: "", exitCode: 0 });
});

describe("errors of usage have a few lines, the last of which names the help", () => {
  test.each([
    [["nothing"], "unknown command 'nothing'"],
    [["metal", "nothing"], "unknown command 'nothing'"],
    [["swift"], "missing required argument 'program.swift'"],
    [["tune", "--fast"], "unknown option '--fast'"],
    [["tune", "--quick", "--reset"], "tune accepts --quick or --reset, not both"],
    [["metal", "check"], "missing required argument 'file.metal'"],
    [["doctor", "more"], "too many arguments for 'doctor'"],
    [["train", "--layers", "many"], "argument 'many' is invalid. Expected a number."],
    [["train", "--backend", "cuda"], "argument 'cuda' is invalid. Allowed choices are metal, cpu, reference."],
    [["generate", "--top-k", ""], "argument '' is invalid. Expected a number."],
  ])("%p ends with a line that names the help", (words, sentence) => {
    const { out, err, exitCode } = orchard(...words);
    expect([out, exitCode]).toEqual(["", 1]);
    expect(err).toContain(sentence);
    expect(err).toMatch(/^error: /);
    const lines = err.trimEnd().split("\n");
    expect(lines.length).toBeLessThanOrEqual(3);
    const path =
      words[0] === "nothing" ? "" : words[0] === "metal" && words[1] === "check" ? "metal check " : `${words[0]} `;
    const scripts = ["train", "generate", "doctor"].includes(words[0]);
    expect(lines.at(-1)).toBe(`\`${scripts ? "bun run" : "bun src/cli/orchard.ts"} ${path}--help\` shows the usage.`);
  });

  test.each([
    [["train", "--stepz", "5"], "(Did you mean --steps?)"],
    [["train", "--learning_rate", "1"], "(Did you mean --learning-rate?)"],
    [["train", "--drop-out", "1"], "(Did you mean --dropout?)"],
    [["generate", "--topk", "1"], "(Did you mean --top-k?)"],
    [["tune", "--quik"], "(Did you mean --quick?)"],
    [["trian"], "(Did you mean train?)"],
    [["metal", "chekc"], "(Did you mean check?)"],
  ])("%p suggests the nearest name", (words, suggestion) => {
    expect(orchard(...words).err.split("\n")[1]).toBe(suggestion);
  });
});

test("metal check of a missing file prints one sentence", () => {
  const { out, err, exitCode } = orchard("metal", "check", "/nowhere/x.metal");
  expect([out, exitCode]).toEqual(["", 1]);
  expect(err).toMatch(/^\[metal check\] .* \(ENOENT\)\n$/);
});

test("help and usage errors load no library, and compute nothing", () => {
  for (const words of [["--help"], ["train", "--help"], ["generate", "--help"], ["tune", "--help"], ["train", "--x"]]) {
    const program = `
      process.argv.splice(2, Infinity, ${words.map((word) => JSON.stringify(word)).join()});
      await import("./src/cli/orchard.ts");
      const maps = await Bun.file("/proc/self/maps").text().catch(() => "");
      const modules = Object.keys(require.cache).filter((path) => path.includes("/src/ops/"));
      console.log(JSON.stringify({ loaded: maps.includes("libOrchard"), modules }));`;
    const { stdout } = Bun.spawnSync([process.execPath, "-e", program], { cwd: packageRoot });
    expect(JSON.parse(stdout.toString().trim().split("\n").at(-1)!)).toEqual({ loaded: false, modules: [] });
  }
});

test("train --help shows each setting with its values in every recipe", () => {
  const { out } = orchard("train", "--help");
  expect(out).toMatch(/^ {2}--learning-rate <rate> +learning rate of AdamW/m);
  expect(out).toMatch(/^ +cpu +gpu +tiny +demo$/m);
  expect(out).toMatch(/^ {2}--layers +4 +6 +2 +4$/m);
  expect(out).toMatch(/^ {2}--prompt +"export " /m);
});
