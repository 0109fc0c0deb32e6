/** Requirements of the release's packages, and the files that packing writes. */
import { beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packagedModule } from "../../scripts/release/assets.ts";
import { bundleLibrary } from "../../scripts/release/bundle.ts";
import { checkGlibc, checkMusl } from "../../scripts/release/dylib.ts";
import { glibcNeeded } from "../../scripts/release/glibc.ts";
import { declaringLater } from "../../scripts/release/later.ts";
import { importingJavaScript, stagePlatform } from "../../scripts/release/stage.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { elf } from "../support/elf.ts";
import { testFolder } from "../support/folder.ts";

const strings = (...names: string[]) => new TextEncoder().encode(`\u007fELF\0${names.join("\0")}\0`);

test("the newest glibc version among a library's symbols is found", () => {
  expect(glibcNeeded(strings("exp", "GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_2.9", "GLIBCXX_3.4.30"))).toBe("2.17");
  expect(glibcNeeded(strings("GLIBC_2.27", "GLIBC_2.3.4", "XGLIBC_2.99", "GLIBC_PRIVATE"))).toBe("2.27");
});

test("the error for a library that requires a newer glibc than 2.28 names its version", async () => {
  const { path: folder } = testFolder("glibc");
  const path = join(folder, "library.so");
  await Bun.write(path, strings("GLIBC_2.28"));
  await checkGlibc(path);
  await Bun.write(path, strings("GLIBC_2.28", "GLIBC_2.35"));
  await expect(checkGlibc(path)).rejects.toThrow("needs glibc 2.35, expected at most 2.28");
});

test("a musl library that requires another library is rejected, with that library's name", async () => {
  const { path: folder } = testFolder("musl");
  const path = join(folder, "library.so");
  await Bun.write(path, elf({ libraries: ["libc.so"] }));
  checkMusl(path);
  for (const libraries of [[], ["libc.so.6"], ["libc.so", "libstdc++.so.6"]]) {
    await Bun.write(path, elf({ libraries }));
    expect(() => checkMusl(path)).toThrow(
      `is linked against ${libraries.join(", ") || "no library"}, expected libc.so`,
    );
  }
});

test("of two packages for a system, the one for the process's C library is loaded", async () => {
  const { path: folder } = testFolder("libc");
  for (const platform of ["linux-x64", "linux-x64-musl"]) {
    const own = join(folder, "node_modules", `orchard-metal-${platform}`);
    const dylib = join(folder, `${platform}.so`);
    await Bun.write(dylib, platform);
    await stagePlatform(own, platform, [dylib]);
    const manifest = await Bun.file(join(own, "package.json")).json();
    expect([manifest.os, manifest.cpu, manifest.libc]).toEqual([
      ["linux"],
      ["x64"],
      [platform.endsWith("musl") ? "musl" : "glibc"],
    ]);
  }
  const source = join(folder, "src", "core", "packaged.js");
  await Bun.write(source, packagedModule("orchard-metal"));
  const program = `const { packaged } = require(${JSON.stringify(source)});
    const names = ["linux-x64.so", "linux-x64-musl.so"];
    for (const platform of ["linux-x64", "linux-x64-musl", "linux-arm64"])
      console.log(platform, names.filter((name) => packaged.dylib(platform, name)).join());`;
  const { stdout, stderr } = Bun.spawnSync([process.execPath, "-e", program], { cwd: folder });
  const lines = ["linux-x64 linux-x64.so", "linux-x64-musl linux-x64-musl.so", "linux-arm64 ", ""];
  expect([stdout.toString(), stderr.toString()]).toEqual([lines.join("\n"), ""]);
});

test("one module knows the paths of files: in the packed library the others are not separate files", () => {
  const source = join(packageRoot, "src");
  const files = [...new Bun.Glob("**/*.ts").scanSync({ cwd: source })].sort();
  const code = (file: string) => readFileSync(join(source, file), "utf8").replace(/^ *(?:\*|\/\/).*$/gm, "");
  expect(files.filter((file) => /\bimport\.meta\b|\b__(?:dir|file)name\b/.test(code(file)))).toEqual(["core/place.ts"]);
});

test("declarations name modules as JavaScript does, and nothing else changes", () => {
  const before = [
    'import { a } from "./a.ts";',
    'import "../b.ts";',
    'declare const c: import("./c.ts").C;',
    'declare module "./d.ts" {}',
    'declare const e: "./e.ts";',
  ];
  expect(importingJavaScript(before.join("\n")).split("\n")).toEqual([
    'import { a } from "./a.js";',
    'import "../b.js";',
    'declare const c: import("./c.js").C;',
    'declare module "./d.js" {}',
    'declare const e: "./e.ts";',
  ]);
});

describe("imports of packages are the same from the bytecode, the plain bundle and the modules", () => {
  const { path: folder } = testFolder("bundle");

  /**
   * A package with each kind of default export, under the names of external packages: an export, the whole module, and
   * a marked export.
   */
  const packages = {
    sharp: ["module", "export default class Made {}\nexport const named = 1;\n"],
    "@resvg/resvg-wasm": ["commonjs", "module.exports = class Made {};\nmodule.exports.named = 2;\n"],
    "@mlc-ai/web-xgrammar": [
      "commonjs",
      "exports.__esModule = true;\nexports.default = class Made {};\nexports.named = 3;\n",
    ],
  } as const;
  const kinds = Object.keys(packages).map(
    (name, at) => `import Made${at}, { named as named${at} } from "${name}";
import * as all${at} from "${name}";
const load${at} = () => require("${name}");
found["${name}"] = async () => [
  new Made${at}().constructor.name, named${at}, all${at}.default === Made${at}, all${at}.named,
  load${at}().named, (await import("${name}")).default === Made${at},
];
`,
  );

  beforeAll(async () => {
    for (const [name, [type, text]] of Object.entries(packages)) {
      await Bun.write(join(folder, "node_modules", name, "package.json"), JSON.stringify({ name, type }));
      await Bun.write(join(folder, "node_modules", name, "index.js"), text);
    }
    await Bun.write(join(folder, "package.json"), '{ "type": "module" }\n');
    const index = `export const found = {};\n${kinds.join("")}`;
    for (const [file, text] of [
      ["index.js", index],
      ["modules.js", index],
      ["test.js", ""],
      ["core/runtime.js", "export const checkRuntime = () => {};"],
    ] as const)
      await Bun.write(join(folder, "src", file), text);
    await bundleLibrary(folder, []);
  });

  test.each(["bundle/bytecode.js", "bundle/library.js", "modules.js"])(
    "%s has the same exports in each form",
    (file) => {
      const program = `const exported = require(${JSON.stringify(join(folder, "src", file))});
      const { found } = exported.library ?? exported;
      for (const name in found) console.log(name, JSON.stringify(await found[name]()));`;
      const { stdout, stderr } = Bun.spawnSync([process.execPath, "-e", program], { cwd: folder });
      const lines = [1, 2, 3].map((named, at) => {
        return `${Object.keys(packages)[at]} ${JSON.stringify(["Made", named, true, named, named, true])}\n`;
      });
      expect([stdout.toString(), stderr.toString()]).toEqual([lines.join(""), ""]);
    },
  );
});

test.each([
  [
    'const p = parameters("x", { a: f(1), b: { c: 1 } });',
    'let p$;\nconst p = ($values) => (p$ ??= parameters("x", { a: f(1), b: { c: 1 } }))($values);',
  ],
  [
    'export const read = reductionParameters("x");',
    'let read$;\nexport const read = ($values) => (read$ ??= reductionParameters("x"))($values);',
  ],
  ['export const c = cpuCall("s", { k: 1 }, ["x"]);', 'export const c = cpuCall("s", () => ({ k: 1 }), ["x"]);'],
  ['const [p, q] = [unlisted("x", { a }), 1];', 'const [p, q] = [unlisted("x", () => ({ a })), 1];'],
  // Objects that are not made at import, or are no declarations, stay as they are.
  ["const p = (name) => parameters(name, { a: 1 });", "const p = (name) => parameters(name, { a: 1 });"],
  ['class A { static p = parameters("x", { a: 1 }) }', 'class A { static p = parameters("x", { a: 1 }) }'],
  [
    'const p = unlisted("x", {}), q = x.parameters("x", { a: 1 });',
    'const p = unlisted("x", {}), q = x.parameters("x", { a: 1 });',
  ],
])("packing declares parameters on first use: %s", (text, expected) => {
  expect(declaringLater(text, "module.js")).toBe(expected);
});
