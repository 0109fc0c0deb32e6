/** The `orchard` command: what it says of itself. What its commands do is tested where they are. */
import { describe, expect, test } from "bun:test";
import packageFile from "../../package.json";
import { packageRoot } from "../../src/core/paths.ts";

function orchard(...words: string[]) {
  const { stdout, stderr, exitCode } = Bun.spawnSync([process.execPath, "src/cli/orchard.ts", ...words], {
    cwd: packageRoot,
  });
  return { out: stdout.toString(), err: stderr.toString(), exitCode };
}

const commands = ["doctor", "train", "generate", "tune", "metal", "swift"];

test("--help shows every command on stdout", () => {
  const { out, err, exitCode } = orchard("--help");
  expect([err, exitCode]).toEqual(["", 0]);
  for (const name of commands) expect(out).toMatch(new RegExp(`^  ${name}\\b.* {2}\\S`, "m"));
});

test("no command at all shows the same, on stderr, and fails", () => {
  const { out, err, exitCode } = orchard();
  expect([out, exitCode]).toEqual(["", 1]);
  expect(err).toBe(orchard("--help").out);
});

test.each(commands)("%s --help explains the command", (name) => {
  const { out, err, exitCode } = orchard(name, "--help");
  expect([err, exitCode]).toEqual(["", 0]);
  expect(out).toStartWith(`Usage: orchard ${name}`);
});

test("--version is the package's", () => {
  expect(orchard("--version")).toEqual({ out: `${packageFile.version}\n`, err: "", exitCode: 0 });
});

describe("is refused, with the usage", () => {
  test.each([
    [["nothing"], "unknown command 'nothing'"],
    [["metal", "nothing"], "unknown command 'nothing'"],
    [["swift"], "missing required argument 'program.swift'"],
    [["tune", "--fast"], "unknown option '--fast'"],
    [["tune", "--quick", "--reset"], "tune takes --quick or --reset, not both"],
    [["metal", "check"], "missing required argument 'file.metal'"],
    [["doctor", "more"], "too many arguments for 'doctor'"],
    [["train", "--layers", "many"], "argument 'many' is invalid. Expected a number."],
    [["train", "--backend", "cuda"], "argument 'cuda' is invalid. Allowed choices are metal, cpu, reference."],
    [["generate", "--top-k", ""], "argument '' is invalid. Expected a number."],
  ])("%p", (words, sentence) => {
    const { out, err, exitCode } = orchard(...words);
    expect([out, exitCode]).toEqual(["", 1]);
    expect(err).toContain(sentence);
    expect(err).toContain("Usage: orchard");
  });
});

test("train --help shows each setting with its values in every recipe", () => {
  const { out } = orchard("train", "--help");
  expect(out).toMatch(/^ {2}--learning-rate <rate> +learning rate of AdamW/m);
  expect(out).toMatch(/^ +cpu +gpu +tiny +demo$/m);
  expect(out).toMatch(/^ {2}--layers +4 +6 +2 +4$/m);
  expect(out).toMatch(/^ {2}--prompt +"export " /m);
});
