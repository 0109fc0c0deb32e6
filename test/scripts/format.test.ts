/** The checks of formats: each names the wrong line, and accepts correct ones. */
import { expect, test } from "bun:test";
import { cpSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { clangFiles, clangFormat, clangProblems } from "../../scripts/format/clang.ts";
import { lineFiles, longLines } from "../../scripts/format/lines.ts";
import { checkOnce } from "../../scripts/format/passed.ts";
import { formatSwift, swiftFiles, swiftFormatGap, swiftProblems } from "../../scripts/format/swift.ts";
import { run } from "../../src/cli/run.ts";
import { findSwift } from "../../src/cli/toolchain.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { testFolder } from "../support/folder.ts";

const { path: folder, file } = testFolder("format");
const swift = findSwift();
const gap = swift ? await swiftFormatGap(swift) : "there is no Swift";

const kernel = `#include <metal_stdlib>

template <typename T>
kernel void copy(
    device const T *x [[buffer(0)]],
    device T *out [[buffer(1)]],
    constant uint &count [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
    out[i] = x[i];
}
template [[host_name("copy_float")]] kernel void copy<float>(
    device const float *, device float *, constant uint &, uint);
`;

test("clang-format names the lines that it would change, and leaves the attributes of MSL alone", async () => {
  for (const path of [".clang-format", "kernels/.clang-format"]) cpSync(join(packageRoot, path), file(path));
  const write = (path: string, text: string) => writeFileSync(file(path), text);
  write("good.cpp", "int main() { return 0; }\n");
  write("bad.cpp", "int main() { return 0; }\n\nint  two( ) {return 2;}\n");
  write("kernels/good.metal", kernel);
  write("kernels/bad.metal", kernel.replace("    out[i]", "  out[i]"));
  const files = ["good.cpp", "bad.cpp", "kernels/good.metal", "kernels/bad.metal"];
  expect(await clangProblems(files, folder)).toEqual(["bad.cpp:3", "kernels/bad.metal:8"]);
  await clangFormat(files, folder);
  expect(await clangProblems(files, folder)).toEqual([]);
  expect(await Bun.file(file("kernels/bad.metal")).text()).toBe(kernel);
});

test("a file that clang-format can't read is a problem, not a pass", async () => {
  expect((await clangProblems(["gone.cpp"], folder)).join()).toContain("gone.cpp");
});

test.skipIf(gap !== undefined)("swift-format names the lines that it would change", async () => {
  const path = file("Bad.swift");
  writeFileSync(path, "let one = 1\nlet  two = 2\n");
  const problems = await swiftProblems(swift!, [path]);
  expect(problems.length).toBe(1);
  expect(problems[0]).toStartWith(`${path}:2: [Spacing]`);
  await formatSwift(swift!, [path]);
  expect(await swiftProblems(swift!, [path])).toEqual([]);
  expect(await Bun.file(path).text()).toBe("let one = 1\nlet two = 2\n");
});

test("a line of more than 120 columns is named; columns are characters, not bytes", () => {
  const text = `${"é".repeat(120)}\n${"a ".repeat(61)}\n`;
  expect(longLines("a.ts", text)).toEqual(["a.ts:2: 122 columns; the limit is 120"]);
});

test("text that can't be wrapped may be longer: rows of tables and links in Markdown, an address in a comment", () => {
  const address = `https://example.org/${"a".repeat(120)}`;
  expect(longLines("a.md", `| ${"a ".repeat(80)}|\n- [a page](${address})\n${address}\n`)).toEqual([]);
  expect(longLines("a.md", `See ${address}\n`).length).toBe(1);
  expect(longLines("a.ts", `// ${address}\nconst a = "${address}";\n`)).toEqual([
    "a.ts:2: 153 columns; the limit is 120",
  ]);
});

test("the checks read every folder of sources, and no outputs of builds", () => {
  const folders = (paths: readonly string[]) => new Set(paths.map((path) => path.split("/")[0]));
  expect(folders(clangFiles())).toEqual(new Set(["kernels", "native", "swift"]));
  expect(folders(swiftFiles())).toEqual(new Set(["swift"]));
  const sources = ["bench", "docs", "examples", "kernels", "native", "scripts", "src", "swift", "test"];
  expect(folders(lineFiles())).toEqual(
    new Set([...sources, "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]),
  );
  expect(clangFiles()).toContain("swift/Sources/MetalRuntime/metal/metal_stdlib");
  const all = [...clangFiles(), ...swiftFiles(), ...lineFiles()];
  expect(all.filter((path) => /(^|\/)(build|\.build|node_modules)\//.test(path))).toEqual([]);
});

test("lint names an object literal that is spread into another one, and accepts other spreads", async () => {
  const { path: root, file } = testFolder("spreads");
  const rule = join(packageRoot, "scripts", "format", "spreads.grit");
  writeFileSync(file("biome.json"), JSON.stringify({ plugins: [rule] }));
  const write = (name: string, text: string) => writeFileSync(file(name), `const a = { b: 1 };\nexport ${text}\n`);
  write("good.ts", "const c = { ...a, d: 2, ...(a.b > 1 ? { e: 3 } : {}), ...(a.b > 2 && { f: 4 }), g: [...[5]] };");
  write("bad.ts", "const c = {\n  ...{ d: 2, e: 3 },\n  ...a,\n  f: { g: 4, ...{ h: 5 } },\n  ...({ i: 6 }),\n};");
  const biome = [process.execPath, join(packageRoot, "node_modules", ".bin", "biome")];
  const { output } = await run([...biome, "lint", "--reporter=github", "good.ts", "bad.ts"], { cwd: root });
  const found = [...output.matchAll(/title=plugin,file=.*?(\w+\.ts),line=(\d+)/g)].map(([, ...place]) =>
    place.join(":"),
  );
  expect(found).toEqual(["bad.ts:3", "bad.ts:5", "bad.ts:6"]);
});

test("only files whose path, content or rules have not passed are checked again", async () => {
  const { path: root, file } = testFolder("passed");
  const parent = file("caches");
  const write = (name: string, text: string) => writeFileSync(file(name), text);
  const check = async (files: readonly string[], wrong: readonly string[] = [], clone = root) => {
    const checked: string[] = [];
    const found = await checkOnce(files, { name: "letters", rules: ["rules"], root: clone, parent }, async (left) => {
      checked.push(...left);
      return left.filter((name) => wrong.includes(name));
    });
    return [checked, found];
  };
  for (const name of ["a", "b", "c", "rules"]) write(name, name);
  const all = ["a", "b", "c"];
  expect(await check(all, ["b"])).toEqual([all, ["b"]]);
  expect(await check(all)).toEqual([all, []]); // nothing is remembered of a check with problems
  expect(await check(all, all)).toEqual([[], []]);
  write("b", "other");
  write("d", "a"); // the content of another file
  expect(await check([...all, "d"], ["d"])).toEqual([["b", "d"], ["d"]]);
  expect(await check([...all, "d"])).toEqual([["b", "d"], []]);
  const clone = testFolder("passed-clone");
  for (const name of [...all, "rules"]) cpSync(file(name), clone.file(name));
  expect(await check(all, all, clone.path)).toEqual([[], []]); // another clone on the machine
  write("rules", "stricter");
  expect(await check(all)).toEqual([all, []]);
});
