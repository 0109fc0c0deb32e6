/** `orchard metal run`: the findings of a command's programs, in every format. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { metalContext } from "../../src/index.ts";
import { withoutAnnouncement } from "../support/child.ts";
import { testFolder } from "../support/folder.ts";
import { bunWords } from "../support/program.ts";

const software = metalContext().isSoftware;
const { path: folder } = testFolder("run");

/** A program whose kernel reads past a buffer, races with equal values, and violates a rule of the API. */
const program = join(folder, "program.ts");
await Bun.write(
  program,
  `import { DeviceBuffer, metalContext, metalKernel } from ${JSON.stringify(join(packageRoot, "src/index.ts"))};
const ahead = Number(process.argv[2] ?? 0);
const kernel = metalKernel({ name: "copy", fileName: "shift.metal", source: \`#include <metal_stdlib>
kernel void copy(device const float* from, device float* to, device int* same, uint i [[thread_position_in_grid]]) {
  to[i] = from[i + \${ahead}];
  if (\${ahead} > 0) same[0] = 1;
}\` });
const x = () => new Float32Array(60).fill(1);
for (let n = 0; n < 2; n++)
  kernel.run({ from: x(), to: x(), same: new Int32Array([1]) }, { grid: 60, threadgroup: 60 });
console.log("computed");
process.exit(Number(process.argv[3] ?? 0));
`,
);

function run(options: readonly string[], ...words: string[]) {
  const orchard = [...bunWords, join(packageRoot, "src/cli/orchard.ts"), "metal", "run", ...options];
  const { stdout, stderr, exitCode } = Bun.spawnSync([...orchard, process.execPath, program, ...words], {
    cwd: folder,
    env: { ...process.env, ORCHARD_METAL_CHECK: undefined },
  });
  return { out: stdout.toString(), err: withoutAnnouncement(stderr.toString()), exitCode };
}

const read = /reads 4 bytes at byte 240 of buffer 'from'.*\[out-of-bounds\]/;

test.if(software)("as text, only the programs' output is printed, and errors fail the command", () => {
  const { out, err, exitCode } = run([], "1");
  expect([out, exitCode]).toEqual(["computed\n", 1]);
  expect(err.match(new RegExp(read, "g"))).toHaveLength(1);
});

test.if(software)("a program without mistakes keeps its exit status", () => {
  expect(run([])).toEqual({ out: "computed\n", err: "", exitCode: 0 });
  expect(run(["--format", "github"], "0", "7")).toEqual({ out: "computed\n", err: "", exitCode: 7 });
});

test.if(software)("GitHub's annotations come after the program's output", () => {
  const { out, exitCode } = run(["--format", "github"], "1");
  const [first, ...lines] = out.trimEnd().split("\n");
  expect([first, lines.length, exitCode]).toEqual(["computed", 2, 1]);
  expect(lines.join("\n")).toMatch(/^::error file=shift\.metal,line=3,col=\d+,title=Metal::kernel 'copy': .*from/m);
  expect(lines.join("\n")).toMatch(/^::notice file=shift\.metal,line=4,col=\d+,title=Metal::kernel 'copy': .*same/m);
});

test.if(software)("SARIF, JSON and JUnit are written to a file", () => {
  const report = (format: string, ...words: string[]) => {
    const output = join(folder, format);
    expect(run(["--format", format, "--output", output], ...words).out).toBe("computed\n");
    return readFileSync(output, "utf8");
  };
  const sarif = JSON.parse(report("sarif", "1")) as { runs: { tool: unknown; results: Record<string, unknown>[] }[] };
  expect(sarif.runs[0].tool).toMatchObject({ driver: { name: "orchard metal run" } });
  expect(sarif.runs[0].results.map(({ level }) => level).sort()).toEqual(["error", "note"]);
  const json = JSON.parse(report("json", "1")) as { files: { file: string; diagnostics: object[] }[] };
  expect(json.files).toMatchObject([{ file: "shift.metal" }]);
  expect(json.files[0].diagnostics).toContainEqual(
    expect.objectContaining({ line: 3, severity: "error", message: expect.stringMatching(read) }),
  );
  const junit = report("junit", "1");
  expect(junit).toContain('<testsuite name="orchard metal run" tests="1" failures="1">');
  expect(junit).toMatch(/<testcase classname="metal" name="shift\.metal".*<failure message="kernel 'copy'/);
  expect(report("junit")).toContain('failures="0"');
});

test("a missing program, or a file that can't be written, causes a one-sentence error", () => {
  const orchard = [...bunWords, join(packageRoot, "src/cli/orchard.ts"), "metal", "run"];
  const missing = Bun.spawnSync([...orchard, "no-such-program"]);
  expect([missing.stderr.toString(), missing.exitCode]).toEqual(["There is no program no-such-program.\n", 127]);
  const file = Bun.spawnSync([...orchard, "--format", "json", "--output", join(folder, "no", "file"), "true"]);
  expect(file.stderr.toString()).toMatch(/^\[metal run\] .*no\/file: no such file or folder.*\n$/);
  expect(file.exitCode).toBe(1);
});
