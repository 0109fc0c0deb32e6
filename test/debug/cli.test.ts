/** The `orchard` command: what it says of itself. What its commands do is tested where they are. */
import { expect, test } from "bun:test";
import packageFile from "../../package.json";
import { packageRoot } from "../../src/debug/paths.ts";

function orchard(...words: string[]) {
  const { stdout, stderr, exitCode } = Bun.spawnSync([process.execPath, "src/cli.ts", ...words], { cwd: packageRoot });
  return { out: stdout.toString(), err: stderr.toString(), exitCode };
}

const usage =
  /^orchard 0[\s\S]*\n {2}orchard doctor +Show.*\n {2}orchard tune .*\n {2}orchard metal check <file\.metal> … .*\n {2}orchard swift <.*\n$/;

test.each([[[]], [["--help"]], [["metal", "--help"]], [["swift", "--help"]]])("%p shows every command", (words) => {
  expect(orchard(...words)).toEqual({ out: expect.stringMatching(usage), err: "", exitCode: 0 });
});

test.each([[["tune", "--help"]], [["tune", "--quick", "--help"]]])("%p explains the command's words", (words) => {
  const { out, err, exitCode } = orchard(...words);
  expect([err, exitCode]).toEqual(["", 0]);
  expect(out).toMatch(/^orchard tune \[--quick \| --reset\]: .*\n\n {2}--quick {2}.*\n {2}--reset {2}.*\n$/);
});

test("--version is the package's", () => {
  expect(orchard("--version")).toEqual({ out: `${packageFile.version}\n`, err: "", exitCode: 0 });
});

test.each([
  [["nothing"], 'There is no command "nothing".\n'],
  [["metal"], 'There is no command "metal".\n'],
  [["swift"], "swift wants <program.swift> [words].\n"],
  [["tune", "--fast"], "tune --fast wants [--quick | --reset].\n"],
  [["tune", "--quick", "--reset"], "tune --quick --reset wants [--quick | --reset].\n"],
  [["metal", "check"], "metal check wants <file.metal> ….\n"],
])("%p is refused, with the usage", (words, sentence) => {
  const { out, err, exitCode } = orchard(...words);
  expect([out, exitCode]).toEqual(["", 1]);
  expect(err).toStartWith(sentence);
  expect(err).toContain("orchard doctor");
});
