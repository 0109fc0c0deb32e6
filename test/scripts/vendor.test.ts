/** Copies of packages behave like the packages, include every license, and nothing else is copied. */
import { beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import * as fc from "fast-check";
import packageFile from "../../package.json";
import { pruneDeclarations } from "../../scripts/vendor/declarations.ts";
import { licenseOf, licenseText } from "../../scripts/vendor/licenses.ts";
import { isVendored, vendoredFile, vendorPackages } from "../../scripts/vendor/vendor.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { testFolder } from "../support/folder.ts";
import { seed } from "../support/some.ts";

const { path: folder } = testFolder("vendor");
const copies = join(folder, "src", "vendor");
const specifiers = new Set<string>();

/** The modules of the sources that import packages, as packed. */
beforeAll(async () => {
  const transpiler = new Bun.Transpiler({ loader: "ts" });
  for (const path of new Bun.Glob("src/**/*.ts").scanSync({ cwd: packageRoot })) {
    const text = (await Bun.file(join(packageRoot, path)).text()).replace(/^#!.*/, "");
    const found = transpiler.scanImports(text).map((own) => own.path);
    if (!found.some(isVendored)) continue;
    for (const specifier of found.filter(isVendored)) specifiers.add(specifier);
    const code = transpiler.transformSync(text);
    await (path.includes("/page/")
      ? Bun.write(join(folder, path), text)
      : Bun.write(join(folder, path.replace(/\.ts$/, ".js")), code));
  }
  await vendorPackages(folder);
});

const copyOf = (specifier: string) => import(join(copies, vendoredFile(specifier)));
// biome-ignore lint/suspicious/noExplicitAny: packages of many shapes
type Library = Record<string, any>;

/** The result of a package for a text. */
const uses: Readonly<Record<string, (library: Library, text: string) => unknown>> = {
  "@eslint-community/regexpp": ({ RegExpParser }, text) =>
    Bun.inspect(attempt(() => new RegExpParser().parsePattern(text).raw)),
  "@huggingface/jinja": ({ Template }, text) => new Template("{{ x | upper }}").render({ x: text }),
  "@huggingface/tokenizers": (library) => Object.keys(library).sort(),
  "cli-progress": ({ SingleBar, MultiBar }) => [SingleBar, MultiBar].map((own) => own.name),
  commander: ({ Command }, text) => {
    const command = new Command("x")
      .argument("<y>")
      .exitOverride()
      .configureOutput({ writeErr: () => undefined });
    return attempt(() => command.parse([text], { from: "user" }).args);
  },
  "d3-scale": ({ scaleLinear }, text) => scaleLinear([0, text.length + 1], [0, 1]).ticks(5),
  "d3-shape": ({ line }, text) => line()([...text].map((own, at) => [at, own.codePointAt(0)])),
  fflate: ({ deflateSync, inflateSync }, text) =>
    new TextDecoder().decode(inflateSync(deflateSync(new TextEncoder().encode(text)))),
  "gpt-tokenizer/bpeRanks/r50k_base": (library) => Bun.hash(JSON.stringify(library["default"])),
  "gpt-tokenizer/encoding/r50k_base": (library, text) => library["default"].encode(text),
  hyparquet: ({ parquetMetadata }, text) =>
    attempt(() => parquetMetadata(new TextEncoder().encode(`${text}PAR1`).buffer)),
  "@dagrejs/dagre": ({ graphlib, layout }, text) => {
    const graph = new graphlib.Graph();
    graph.setGraph({});
    for (const [at, letter] of [...text].entries()) {
      graph.setNode(letter, { width: 10 + at, height: 5 });
      if (at > 0) graph.setEdge([...text][at - 1], letter, {});
    }
    layout(graph);
    return graph.nodes().map((node: string) => [node, graph.node(node)]);
  },
  marked: ({ Lexer }, text) => Lexer.lex(text),
  papaparse: (library, text) => library["default"].parse(`a,b\n${text},1`),
  pbf: ({ PbfReader }, text) => {
    const bytes = new TextEncoder().encode(text);
    return new PbfReader(Uint8Array.from([bytes.length % 128, ...bytes])).readBytes();
  },
  "prom-client": ({ Registry, Counter }, text) => {
    const registry = new Registry();
    const help = "help";
    new Counter({ name: "count", help, labelNames: ["x"], registers: [registry] }).inc({ x: text });
    return registry.metrics();
  },
  tinyqueue: (library, text) => {
    const queue = new library["default"]([...text]);
    return Array.from(text, () => queue.pop());
  },
  uplot: (library) => typeof library["default"],
  zod: ({ object, string }, text) => JSON.stringify(object({ x: string().max(5) }).safeParse({ x: text })),
};

function attempt(body: () => unknown): unknown {
  try {
    return body();
  } catch (error) {
    return String(error);
  }
}

test("each package that the sources import has a row in this file, and a copy in src/vendor", () => {
  const programs = [...specifiers].filter((specifier) => !/\.(?:ttf|css)$/.test(specifier));
  expect(programs.sort()).toEqual(Object.keys(uses).sort());
  expect([...specifiers].filter((specifier) => !existsSync(join(copies, vendoredFile(specifier))))).toEqual([]);
});

test.each(Object.entries(uses))(`%s: drawn texts give the package's results (seed ${seed})`, async (name, use) => {
  const [package_, copy] = [await import(name), await copyOf(name)];
  expect(Object.keys(copy).filter((key) => typeof copy[key] !== typeof package_[key])).toEqual([]);
  const texts = fc.sample(fc.string({ unit: "grapheme" }), { numRuns: 20, seed });
  for (const text of texts) expect(await use(copy, text)).toEqual(await use(package_, text));
});

test("bundled modules import copies of packages by their paths", async () => {
  const named: string[] = [];
  for (const path of new Bun.Glob("src/**/*.{js,ts}").scanSync({ cwd: folder })) {
    if (path.startsWith("src/vendor/")) continue;
    const text = readFileSync(join(folder, path), "utf8").replace(/^#!.*/, "");
    for (const { path: own } of new Bun.Transpiler({ loader: "ts" }).scanImports(text)) {
      expect([path, isVendored(own)]).toEqual([path, false]);
      if (!own.includes("/vendor/")) continue;
      expect(existsSync(join(folder, dirname(path), own))).toBe(true);
      named.push(own);
    }
  }
  expect(named.length).toBeGreaterThanOrEqual(specifiers.size);
});

describe("licenses of copied code are included", () => {
  const text = () => readFileSync(join(copies, "LICENSES.md"), "utf8");

  test("the full text is there for every package whose code a copy contains", async () => {
    const names = [...text().matchAll(/^## (\S+) \d+\.\d+\.\d+ \(/gm)].map(([, name]) => name);
    const direct = [...specifiers].map((own) => /^(?:@[^/]+\/)?[^/]+/.exec(own)![0]);
    expect(direct.filter((name) => !names.includes(name))).toEqual([]);
    expect(names).toEqual(expect.arrayContaining(["d3-array", "bintrees", "emoji-regex"])); // used by dependencies
    for (const name of direct) {
      const { texts } = await licenseOf(join(packageRoot, "node_modules", name, "package.json"));
      for (const [file, own] of Object.entries(texts))
        expect([name, file, text().includes(own.trim())]).toEqual([name, file, true]);
    }
  });

  const packed = async (license: string, files: Record<string, string>) => {
    const path = join(testFolder("license").path, "node_modules", "@some", "one", "package.json");
    await Bun.write(path, JSON.stringify({ name: "@some/one", version: "1.2.3", license }));
    for (const [name, content] of Object.entries(files)) await Bun.write(join(dirname(path), name), content);
    return licenseOf(join(dirname(path), "lib", "index.js"));
  };

  test("notices are included too, each package once", async () => {
    const one = await packed("Apache-2.0", { LICENSE: "the license", NOTICE: "the notice", "README.md": "no" });
    const found = [...licenseText([one, one]).matchAll(/@some\/one|the license|the notice|no\b/g)].map(
      ([text]) => text,
    );
    expect(found).toEqual(["@some/one", "the license", "the notice"]);
  });

  test.each(["GPL-3.0", "MPL-2.0", "UNLICENSED"])("%s does not allow a copy", async (license) => {
    await expect(packed(license, { LICENSE: "text" })).rejects.toThrow(`@some/one: a copy is not allowed under`);
  });

  test("a package without a license text is not copied", async () => {
    await expect(packed("MIT", {})).rejects.toThrow("@some/one: there is no file with its license");
  });
});

describe("declarations of copied packages are checked", () => {
  const staged = async (files: Record<string, string>) => {
    const { path } = testFolder("declarations");
    const entries = { "index.d.ts": 'export * from "./a.js";', "test.d.ts": 'import "./index.js";' };
    for (const [name, text] of Object.entries({ ...entries, ...files })) await Bun.write(join(path, "src", name), text);
    return path;
  };

  test("unused declarations are removed", async () => {
    const path = await staged({
      "a.d.ts": 'export type A = import("./b/b.js").B;',
      "b/b.d.ts": 'export type { C as B } from "../c.js";',
      "c.d.ts": "export type C = 1;",
      "left.d.ts": 'import type { C } from "./c.js";',
    });
    await pruneDeclarations(path, ["src/index.d.ts", "src/test.d.ts"]);
    const left = [...new Bun.Glob("**/*.d.ts").scanSync({ cwd: join(path, "src") })].sort();
    expect(left).toEqual(["a.d.ts", "b/b.d.ts", "c.d.ts", "index.d.ts", "test.d.ts"]);
  });

  test("declarations that name a package which users lack are rejected", async () => {
    const path = await staged({ "a.d.ts": 'import type { z } from "zod";\nexport type A = z.ZodType;' });
    await expect(vendorPackages(path)).rejects.toThrow("a.d.ts imports types of a package that users do not install");
  });
});

test("users install only packages that can't be copied", () => {
  expect(Object.keys(packageFile.dependencies)).toEqual(["@mlc-ai/web-xgrammar", "@resvg/resvg-wasm"]);
});
