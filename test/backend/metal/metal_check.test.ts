/** `orchard metal check`: files and folders, includes and macros, formats, and the exit status. */
import { expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { formatResults, parseDiagnostics } from "../../../src/cli/diagnostics.ts";
import { packageRoot } from "../../../src/core/paths.ts";
import { metalContext } from "../../../src/index.ts";
import { testFolder } from "../../support/folder.ts";
import { bunWords } from "../../support/program.ts";

const software = metalContext().isSoftware;
const { path: folder } = testFolder("check");

function file(name: string, text: string): string {
  const path = join(folder, name);
  mkdirSync(join(path, ".."), { recursive: true });
  writeFileSync(path, `#include <metal_stdlib>\nusing namespace metal;\n${text}`);
  return path;
}

function check(...words: string[]) {
  const { stdout, stderr, exitCode } = Bun.spawnSync([...bunWords, "src/cli/orchard.ts", "metal", "check", ...words], {
    cwd: packageRoot,
  });
  return { out: stdout.toString(), err: stderr.toString(), exitCode };
}

const good = file("all/good.metal", "kernel void k(device float* x) { x[0] = 1; }\n");
const bad = file(
  "all/deep/bad.metal",
  "kernel void k(device float* x) {\n  threadgroup float* y = x;\n  y[0] = 1;\n}\n",
);
file("all/notes.txt", "no kernel");

test("a folder is searched, and all its files are reported in order", () => {
  const { out, exitCode } = check("--jobs", "2", join(folder, "all"));
  expect(out).toMatch(/^.*bad\.metal:4:\d+: error: cannot initialize.*good\.metal: no problems\n$/s);
  expect(exitCode).toBe(1);
  expect(check(join(folder, "all", "good.metal")).exitCode).toBe(0);
});

// Other tests load every module that defines generated headers; the command alone must too.
test("the command knows every generated header that a kernel includes", () => {
  const program = `
    await import("./src/cli/kernels.ts");
    const { generatedHeaders } = await import("./src/backend/metal/launch.ts");
    console.log(JSON.stringify(generatedHeaders().map(({ name }) => name)));`;
  const known = JSON.parse(`${Bun.spawnSync([process.execPath, "-e", program], { cwd: packageRoot }).stdout}`);
  const kernels = join(packageRoot, "kernels");
  const included = [...new Bun.Glob("**/*.{metal,h}").scanSync({ cwd: kernels })].flatMap((name) =>
    [...readFileSync(join(kernels, name), "utf8").matchAll(/#include "(generated\/[^"]+)"/g)].map(
      ([, header]) => header,
    ),
  );
  expect(included.length).toBeGreaterThan(50);
  expect(included.filter((header) => !known.includes(header))).toEqual([]);
});

test("a folder without kernels, and a missing file, are failures", () => {
  mkdirSync(join(folder, "empty"), { recursive: true });
  expect(check(join(folder, "empty"))).toMatchObject({ exitCode: 1, err: expect.stringContaining("no .metal file") });
  expect(check(join(folder, "nothing.metal")).exitCode).toBe(1);
});

test("includes come from -I, macros from -D, and the language from --std", () => {
  file("headers/scale.h", "inline float scale(float x) { return x * FACTOR; }\n");
  const user = file(
    "user.metal",
    '#include "scale.h"\n#if __METAL_VERSION__ != 240\n#error version\n#endif\n' +
      "kernel void k(device float* x) { x[0] = scale(x[1]) + TWO; }\n",
  );
  const words = ["-I", join(folder, "headers"), "-D", "FACTOR=3.0f", "-DTWO=2", "--std=macos-metal2.4"];
  expect(check(...words, user)).toEqual({ out: `${user}: no problems\n`, err: "", exitCode: 0 });
  expect(check(user).exitCode).toBe(1);
  const newest = file("newest.metal", "#if __METAL_VERSION__ != 320\n#error version\n#endif\nkernel void k() {}\n");
  expect(check(newest)).toEqual({ out: `${newest}: no problems\n`, err: "", exitCode: 0 });
  expect(check("--std=c++17", good)).toMatchObject({ exitCode: 1, err: expect.stringContaining("such as metal3.1") });
});

test("a file included under several names is one file, and angle brackets search the folders of -I", () => {
  const text = (path: string, content: string) => {
    mkdirSync(join(folder, "tree", path, ".."), { recursive: true });
    writeFileSync(join(folder, "tree", path), content);
  };
  text("lib/common/defines.h", "#pragma once\ninline float three() { return 3; }\n");
  text("lib/common/loop.h", '#pragma once\n#include "loop.h"\n#include "defines.h"\n');
  // two files with the same name, each included by the files in its folder
  text("lib/a/part.h", '#pragma once\n#include "../common/defines.h"\ninline float a() { return three(); }\n');
  text("lib/b/part.h", "#pragma once\n#include <lib/common/defines.h>\ninline float b() { return three(); }\n");
  text("lib/b/both.h", '#include "part.h"\n#include <lib/common/loop.h>\n');
  const includes = '#include "lib/a/part.h"\n#include <lib/b/both.h>\n#if 0\n#include "gone.h"\n#endif\n';
  const user = file("tree/user.metal", `${includes}kernel void k(device float* x) { x[0] = a() + b(); }\n`);
  expect(check("-I", join(folder, "tree"), user)).toEqual({ out: `${user}: no problems\n`, err: "", exitCode: 0 });
  const broken = file("tree/broken.metal", '#include "lib/b/wrong.h"\nkernel void k() {}\n');
  text("lib/b/wrong.h", "\ninline float c() { return four(); }\n");
  expect(check(broken).out).toMatch(/lib\/b\/wrong\.h:2:27: error: use of undeclared identifier 'four'/);
});

/** Only the executing pass rejects this, in the last of many kernels. */
const many = Array.from({ length: 20 }, (_, i) => `kernel void k${i}(device float* x) { x[0] = ${i}; }`);
test.if(software)(
  "a file may call a function that another file defines, and --library compares all definitions",
  () => {
    writeFileSync(join(folder, "shared.h"), "#pragma once\nfloat shared(float x);\nstruct Item { float value; };\n");
    const caller = file(
      "linked/a.metal",
      '#include "../shared.h"\nkernel void k(device float* x) { Item i{x[1]}; x[0] = shared(i.value); }\n',
    );
    const definition = '#include "../shared.h"\nfloat shared(float x) { Item i{x}; return i.value; }\n';
    const callee = file("linked/b.metal", definition);
    const lines = [caller, callee].map((path) => `${path}: no problems\n`).join("");
    expect(check(join(folder, "linked"))).toEqual({ out: lines, err: "", exitCode: 0 });
    expect(check("--library", "--jobs", "2", caller, callee)).toMatchObject({ out: lines, exitCode: 0 });
    expect(check(caller).out).toContain("error: undefined symbols: shared(float): ");
    const other = file("other.metal", "float unused() { return 1; }\n");
    const again = file("again.metal", "float unused() { return 2; }\n");
    expect(check(other, again).exitCode).toBe(0);
    expect(check("--library", other, again).out).toContain(
      `${again}:3:7: error: 'unused()' is also defined at ${other}:3, in another file of this library`,
    );
  },
);

test.if(software)("a library of many kernels passes the executing check", () => {
  const sound = file("many.metal", `${many.join("\n")}\n`);
  expect(check(sound)).toMatchObject({ out: `${sound}: no problems\n`, exitCode: 0 });
  const last = "kernel void last(device float* x) { float4 v = float4(1.0f, 2.0f); x[0] = v.x; }";
  const { out, exitCode } = check(file("broken.metal", `${many.join("\n")}\n${last}\n`));
  expect(out).toMatch(/broken\.metal:23:\d+: error: /);
  expect(exitCode).toBe(1);
  const calls = file(
    "linked/many.metal",
    `float elsewhere(float x);\n${many.join("\n")}\nkernel void l(device float* x) { x[0] = elsewhere(x[1]); }\n`,
  );
  expect(check(calls).out).toContain("error: undefined symbols: elsewhere(float): ");
  const defined = file("elsewhere.metal", "float elsewhere(float x) { return x; }\n");
  expect(check(calls, defined).out).toBe([calls, defined].map((path) => `${path}: no problems\n`).join(""));
});

test("findings are written in each format", () => {
  const { files } = JSON.parse(check("--format", "json", bad).out);
  expect(files[0].diagnostics[0]).toMatchObject({ file: bad, line: 4, severity: "error" });
  const [run] = JSON.parse(check("--format", "sarif", bad).out).runs;
  expect(run.results[0].locations[0].physicalLocation).toMatchObject({
    artifactLocation: { uri: bad },
    region: { startLine: 4 },
  });
  const junit = check("--format", "junit", bad).out;
  expect(junit).toMatch(/<testsuite name="orchard metal check" tests="1" failures="1">/);
  expect(check("--format", "github", bad).out).toMatch(/^::error file=.*bad\.metal,line=4,col=\d+,title=Metal::cannot/);
  expect(check("--format", "html", bad).exitCode).toBe(1);
});

test("special characters of a format are escaped", () => {
  const text = "a,b:1.metal:2:3: error: 100% of <T>\n  x\n  ^\nnote.metal:4:1: note: seen\nprogram: warning: no line";
  expect(parseDiagnostics(text).map(({ line, severity }) => [line, severity])).toEqual([
    [2, "error"],
    [4, "note"],
    [0, "warning"],
  ]);
  const results = [{ file: "a,b:1.metal", text, seconds: 0.5 }];
  expect(formatResults(results, "github").split("\n")).toEqual([
    "::error file=a%2Cb%3A1.metal,line=2,col=3,title=Metal::100%25 of <T>",
    "::notice file=note.metal,line=4,col=1,title=Metal::seen",
    "::warning file=program,title=Metal::no line",
  ]);
  expect(formatResults(results, "junit")).toContain('<failure message="100% of &lt;T&gt;">');
  expect(formatResults([{ ...results[0], text: "" }], "text")).toBe("a,b:1.metal: no problems");
});

test("a variable that is read before it is written is a warning", () => {
  const path = file("warned.metal", "kernel void k(device float* x) {\n  float c;\n  c += x[0];\n  x[0] = c;\n}\n");
  const { out, exitCode } = check(path);
  const said = software ? `${path}:5: warning: variable 'c' is read before anything is written to it` : "no problems";
  expect([out, exitCode]).toEqual([expect.stringContaining(said), 0]);
});
