/**
 * The packages as users install them: staged and packed, added to an empty project without network or toolchain, and
 * used there. They and their dependencies come from a registry in this process. The dylib is this machine's build; `bun
 * run release --local` does the same with the portable one, from a real registry, in projects of every kind.
 */
import { beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, dirname, join, normalize } from "node:path";
import packageFile from "../package.json";
import { linkProblems, linksOf } from "../scripts/docs/links.ts";
import { unpackedKernels } from "../scripts/release/assets.ts";
import { cpuLibraryName, libraryName, packageRoot } from "../src/core/paths.ts";
import * as library from "../src/index.ts";
import { testCommands, testDocuments, testEntries, testSeparateEntries } from "./pack/installed.ts";
import { archive, kernelProgram, type Names, namesOf, oneFile, program, tsconfig } from "./pack/programs.ts";
import {
  add,
  bun,
  bunWith,
  device,
  environment,
  folder,
  hasDevice,
  hasMetal,
  installed,
  main,
  noRegistry,
  nothing,
  packHere,
  platformName,
  project,
  spoiled,
  withCompiler,
  without,
} from "./pack/project.ts";

let [tarball, platformTarball] = ["", ""];
beforeAll(async () => {
  [tarball, platformTarball] = await packHere();
});

describe("the packed tarballs hold what users need", () => {
  const listed = (path = tarball) => {
    const { stdout } = Bun.spawnSync(["tar", "-tzf", path]);
    return stdout
      .toString()
      .trim()
      .split("\n")
      .map((path) => path.replace(/^package\//, ""));
  };

  test("the package contains JavaScript, declarations, kernels and documents, and nothing else", () => {
    const kinds = [
      /^(?:package\.json|README\.md|LICENSE|CHANGELOG\.md)$/,
      /^docs\/[\w/-]+\.(?:md|svg|png)$/,
      /^src\/[\w./]+(?<!\.d)\.(?:js|html|css)$/,
      /^src\/[\w./]+\.d\.ts$/,
      /^src\/kernels\.json$/,
      /^src\/vendor\/(?:LICENSES\.md|\w+\.ttf)$/,
      /^src\/bundle\/(?:(?:numerics|namespaces)_)?bytecode\.js\.jsc$/,
      /^src\/bundle\/(?:(?:(?:numerics|namespaces)_)?bytecode|library|numerics|namespaces)\.js\.map$/,
      /^src\/train\/dashboard\/page\/(?:client|ticks)\.ts$/,
      /^src\/serve\/page\/(?:client|events|images|markdown|message|settings|store)\.ts$/,
      /^swift\/(?:Package\.swift|Sources\/.*)$/,
    ];
    const names = listed();
    expect(names.filter((name) => !kinds.some((kind) => kind.test(name)))).toEqual([]);
    expect(kinds.filter((kind) => !names.some((name) => kind.test(name)))).toEqual([]);
    expect(names.filter((name) => /(?:^|\/)\.|\.test\.|(?:^|\/)[Tt]ests?\/|\.o$|~$/.test(name))).toEqual([]);
  });

  test("every link in the package's documents leads to one of its files", () => {
    const names = new Set(listed());
    const documents = [...names].filter((name) => name.endsWith(".md"));
    expect(documents.length).toBeGreaterThan(30);
    expect(linkProblems(documents, main)).toEqual([]);
    for (const document of documents)
      for (const { target } of linksOf(readFileSync(join(main, document), "utf8"))) {
        if (/^[a-z]+:|^#/.test(target)) continue;
        const file = normalize(join(dirname(document), target.split("#")[0]));
        expect([document, target, [...names].some((name) => name === file || name.startsWith(`${file}/`))]).toEqual([
          document,
          target,
          true,
        ]);
      }
  });

  test("the platform's tarball contains this machine's dylib of the cpu backend, and of Metal only Apple's", () => {
    const dylibs = [cpuLibraryName, ...(hasMetal ? [libraryName] : [])];
    const others = ["LICENSE", "README.md", "index.d.ts", "index.js", "package.json"];
    expect(listed(platformTarball).sort()).toEqual([...others, ...dylibs].sort());
  });

  test("tarballs have checksums that sha256sum reads", async () => {
    const sums = await Bun.file(join(folder, "tarballs", "SHA256SUMS")).text();
    const digest = (path: string) => new Bun.SHA256().update(readFileSync(path)).digest("hex");
    expect(sums).toBe([tarball, platformTarball].map((path) => `${digest(path)}  ${basename(path)}\n`).join(""));
  });

  test("no declaration names a TypeScript source, and only elements of an unknown rank have type any", () => {
    const declarations = [...new Bun.Glob("src/**/*.d.ts").scanSync({ cwd: main })];
    const texts = declarations.map((file) => ({ file, text: readFileSync(join(main, file), "utf8") }));
    const withoutComments = (text: string) => text.replace(/\/\*[\s\S]*?\*\//g, "");
    const namesSource = (text: string) => /["'][./][^"'\n]*(?<!\.d)\.ts["']/.test(withoutComments(text));
    expect(texts.filter(({ text }) => namesSource(text)).map(({ file }) => file)).toEqual([]);
    const anys = /(?:[:|=<,]|=>)\s*any\s*(?:[;,)>|[\]}]|$)/m;
    const code = (text: string) =>
      text.replace(/\/\*[\s\S]*?\*\/|"[^"\n]*"/g, "").replace(/\b(?:toArray|tolist)\(\): any;/, "");
    expect(texts.filter(({ text }) => anys.test(code(text))).map(({ file }) => file)).toEqual([]);
  });
});

describe("the package works in an empty project", () => {
  let asked: string[];
  beforeAll(async () => {
    asked = await add();
  });

  function used() {
    const { out, err, exitCode } = bun("program.ts");
    expect([exitCode, exitCode === 0 ? "" : err]).toEqual([0, ""]);
    return { ...(JSON.parse(out) as { learned: number[]; backends: string[]; sum: number }), err };
  }

  function expectLearned({ learned: [w, b], sum }: { learned: number[]; sum: number }): void {
    expect(w).toBeCloseTo(2, 4);
    expect(b).toBeCloseTo(1, 4);
    expect(sum).toBe(6);
  }

  test("only the package and its dependencies were added", () => {
    const dependencies = Object.keys(packageFile.dependencies);
    expect(asked).toEqual(expect.arrayContaining(dependencies));
    const names = ["*/package.json", "@*/*/package.json"].flatMap((pattern) => [
      ...new Bun.Glob(pattern).scanSync({ cwd: join(project, "node_modules") }),
    ]);
    expect(names.map((name) => name.replace("/package.json", "")).sort()).toEqual(asked);
    expect(asked).toContain(platformName);
  });

  test("without the dylib, there are three packages of at most 30 MB together", () => {
    const others = asked.filter((name) => name !== platformName);
    const bytesOf = (folder: string) =>
      [...new Bun.Glob("**").scanSync({ cwd: folder, dot: true })].reduce(
        (sum, path) => sum + statSync(join(folder, path)).size,
        0,
      );
    const bytes = others.map((name) => bytesOf(join(project, "node_modules", name)));
    expect(others).toHaveLength(3);
    expect(bytes.reduce((sum, own) => sum + own, 0)).toBeWithin(10e6, 30e6);
  });

  test("a program computes and trains with the packed dylib, without output", () => {
    const result = used();
    expectLearned(result);
    expect(result.backends).toEqual([hasMetal ? "metal" : "cpu"]);
    if (process.platform === "linux" || hasMetal) expect(result.err).toBe("");
  });

  test.each([
    ["tensor([1]).toArray()", ""],
    ["optim", ""],
    ["Object.keys(io)", ""],
    ["fft.fft(tensor([1]))", "numerics"],
    ["linalg.inv(tensor([[1]]))", "numerics"],
    ["compile(() => tensor([1]))", "numerics"],
  ])(
    "bundles that a program loads on first use: for %s %p, and for a member of nn all",
    async (expression, expected) => {
      const text = `import { compile, fft, io, linalg, nn, optim, tensor } from "${packageFile.name}";
      const loaded = () => ["numerics", "namespaces"].filter((name) =>
        Object.keys(require.cache).some((path) => path.endsWith("/" + name + "_bytecode.js"))).join();
      ${expression};
      console.log([loaded(), nn.Linear.name, loaded(), nn.Linear === nn.Linear, compile.name].join(" "));`;
      await Bun.write(join(project, "later.js"), text);
      const out = `${expected} Linear numerics,namespaces true compile\n`;
      expect(bun("later.js")).toEqual({ out, err: "", exitCode: 0 });
    },
  );

  test("overrides and routes find primitives that only later bundles use", async () => {
    const text = `import { override, route } from "${packageFile.name}";
      override("recurrent", "cpu", () => []);
      route("linalg", "cpu");
      try { override("none", "cpu", () => []); } catch (error) { console.log(error.code); }`;
    await Bun.write(join(project, "override.js"), text);
    const { out, exitCode } = bun("override.js");
    expect([out, exitCode]).toEqual(["unknownName\n", 0]);
  });

  test("the package is one file with bytecode that this Bun accepts, and prints each module's output", async () => {
    await Bun.write(join(project, "one.js"), oneFile);
    await Bun.write(
      join(project, "items.ts"),
      "export default () => ({ length: 2, get: (index: number) => -index });\n",
    );
    const { out, err, exitCode } = bun("one.js");
    expect([exitCode, exitCode === 0 ? "" : err]).toEqual([0, ""]);
    const told = JSON.parse(out) as { loaded: string[]; names: Record<string, string>; stack: string; item: number };
    expect(told.loaded).toEqual([
      "bundle/bytecode.js",
      "bundle/chosen.js",
      "core/errors.js",
      "core/packaged.js",
      "core/place.js",
      "index.js",
    ]);
    expect(told.names).toEqual(namesOf(library as unknown as Names));
    expect(told.stack).toContain(join(installed, "src", "ops", "matmul", "matmul.js"));
    expect(existsSync(join(installed, "src", "ops", "matmul", "matmul.d.ts"))).toBe(true);
    expect(told.item).toBe(-1); // computed in a thread by a separate module
  });

  test("each namespace is an entry with the same members", async () => {
    const { name, exports } = packageFile;
    const entries = Object.keys(exports).flatMap(
      (path) => /^\.\/(?!test$|package|serve$|train$)(\w+)$/.exec(path)?.[1] ?? [],
    );
    const namespaces = Object.entries(library).filter(
      ([, value]) => Object.prototype.toString.call(value) === "[object Module]",
    );
    expect(entries).toEqual(namespaces.map(([key]) => key).sort());
    const imports = entries.map((entry) => `import * as ${entry} from "${name}/${entry}";`).join("\n");
    const text = `import * as library from "${name}";\n${imports}
      for (const [entry, members] of Object.entries({ ${entries.join(", ")} })) {
        const whole = library[entry];
        const names = [...new Set([...Object.keys(whole), ...Object.keys(members)])];
        console.log(entry, names.length > 3, names.filter((each) => whole[each] !== members[each]).join());
      }`;
    await Bun.write(join(project, "entries.js"), text);
    expect(bun("entries.js")).toEqual({ out: entries.map((each) => `${each} true \n`).join(""), err: "", exitCode: 0 });
  });

  test("matchers for tests use the same library", async () => {
    const text = `import { expect, test } from "bun:test";
      import "${packageFile.name}/test";
      import { tensor } from "${packageFile.name}";
      test("one", () => expect(tensor([1])).toBeCloseToTensor(tensor([1])));`;
    await Bun.write(join(project, "one.test.ts"), text);
    const { err, exitCode } = bun("test", "one.test.ts");
    expect([exitCode, exitCode === 0 ? "" : err]).toEqual([0, ""]);
  });

  test("nothing in the package names the folder in which it was bundled", () => {
    const names = ["bytecode", "library", "numerics", "numerics_bytecode", "namespaces", "namespaces_bytecode"];
    for (const file of names.flatMap((name) => [`${name}.js`, `${name}.js.map`]))
      expect([file, readFileSync(join(installed, "src", "bundle", file), "utf8").includes(basename(folder))]).toEqual([
        file,
        false,
      ]);
  });

  test.each([
    ["bytecode of another version", (path: string) => writeFileSync(`${path}.jsc`, new Uint8Array(1000))],
    ["no bytecode", (path: string) => rmSync(`${path}.jsc`)],
    ["another engine", (path: string) => rmSync(path)], // another engine does not request this file
  ])("%s: the library's source text computes, without output", (_, spoil) => {
    const path = join(installed, "src", "bundle", "bytecode.js");
    using _spoiled = spoiled([path, `${path}.jsc`], () => spoil(path));
    const result = used();
    expectLearned(result);
    expect(result.err).toBe("");
  });

  testEntries();
  testSeparateEntries();
  testDocuments();
  testCommands();

  test("the package's command runs", () => {
    const { out, exitCode } = bun("x", "orchard", "--version");
    expect([out, exitCode]).toEqual([`${packageFile.version}\n`, 0]);
  });

  test("every command that the package recommends exists: none that only a clone has", () => {
    const advice = [
      bun("x", "orchard", "doctor"),
      bun("x", "orchard", "train", "--resume", "nowhere"),
      bun("x", "orchard", "train", "--stepz", "3"),
      bun("x", "orchard", "swift", "program.swift"),
    ].map(({ out, err }) => out + err);
    for (const text of advice) expect(text).not.toMatch(/bun run|bun src|scripts\//);
    expect(advice[0]).toContain("`bunx orchard tune` measures this machine");
    expect(advice[1]).toContain("nowhere has no run; start one with `bunx orchard train`");
    expect(advice[2]).toContain("bunx orchard train --help");
  });

  test("the package's types resolve and match the tensors", async () => {
    const types = join(project, "node_modules", "@types");
    mkdirSync(types, { recursive: true });
    for (const name of ["@types/bun", "@types/node", "bun-types", "undici-types"])
      symlinkSync(join(packageRoot, "node_modules", name), join(project, "node_modules", name));
    await Bun.write(join(project, "tsconfig.json"), JSON.stringify(tsconfig));
    const tsc = join(packageRoot, "node_modules", ".bin", "tsc");
    expect(bun(tsc, "--noEmit")).toEqual({ out: "", err: "", exitCode: 0 });
    await Bun.write(join(project, "program.ts"), program.replace('Tensor<"float32">', 'Tensor<"int32">'));
    const { out, exitCode } = bun(tsc, "--noEmit");
    expect(out).toMatch(/^program\.ts\(4,7\): error TS2322: .*float32/m);
    expect(exitCode).not.toBe(0);
    await Bun.write(join(project, "program.ts"), program);
  });

  test("an executable and a bundle compute with the embedded dylib, if nothing else is installed", async () => {
    const away = join(folder, "away");
    mkdirSync(away);
    expect(bun("build", "--compile", "program.ts", "--outfile", join(away, "executable")).exitCode).toBe(0);
    expect(bun("build", "--target=bun", "program.ts", "--outdir", join(away, "bundle")).exitCode).toBe(0);
    for (const command of [[join(away, "executable")], [process.execPath, join(away, "bundle", "program.js")]]) {
      const { stdout, stderr } = Bun.spawnSync(command, { cwd: nothing, env: environment });
      expect(stderr.toString()).toBe("");
      const result = JSON.parse(stdout.toString()) as { learned: number[]; backends: string[]; sum: number };
      expectLearned(result);
      expect(result.backends).toEqual([hasMetal ? "metal" : "cpu"]);
    }
    // The package also has the modules that are loaded on first use.
    await Bun.write(join(project, "archive.ts"), archive);
    expect(bun("build", "--target=bun", "archive.ts", "--outdir", join(away, "bundle")).exitCode).toBe(0);
    const { stdout, stderr } = Bun.spawnSync([process.execPath, join(away, "bundle", "archive.js")], {
      cwd: away,
      env: { ...environment, ...noRegistry },
    });
    expect([stdout.toString(), stderr.toString()]).toEqual(["[ 1, 2 ]\n", ""]);
  });

  test("kernels are embedded in the JavaScript alone, each with the text of its file, without comments", () => {
    const kernels = unpackedKernels(readFileSync(join(installed, "src", "kernels.json"), "utf8"));
    const files = [...new Bun.Glob("**/*.{metal,h}").scanSync({ cwd: join(packageRoot, "kernels") })].sort();
    expect(Object.keys(kernels)).toEqual(files);
    for (const file of files) {
      const text = readFileSync(join(packageRoot, "kernels", file), "utf8");
      const codeOf = (lines: string) => lines.replaceAll(/^[ \t]*\/\/.*$/gm, "").replaceAll(/[ \t]+/g, "");
      expect(codeOf(kernels[file])).toBe(codeOf(text)); // no line moves
    }
  });

  test("without the platform's package the import says so in one line, and the reference backend computes", () => {
    using _away = without(platformName);
    const name = hasMetal ? "metal" : "cpu";
    const line = `[orchard] ${name} is unavailable: its dylib is in ${platformName}, which is not installed: `;
    const { err } = bun("-e", `import "${packageFile.name}";`);
    expect(err.trimEnd().split("\n")).toEqual([expect.stringContaining(line)]);
    expect(err).toContain(`\`bun add ${platformName}@${packageFile.version}\``);
    const result = used();
    expectLearned(result);
    expect(result.backends).toEqual(["reference"]);
    expect(result.err.trimEnd().split("\n")).toHaveLength(hasMetal ? 2 : 1);
  });
});

describe.if(hasDevice)("the software device's package works", () => {
  const { name } = device;

  beforeAll(async () => {
    await device.stage();
    await Bun.write(join(project, "kernel.ts"), kernelProgram);
  });

  test("the package contains the dylib, Metal's headers and their descriptions", async () => {
    const names = [...new Bun.Glob("**").scanSync({ cwd: device.folder })];
    const own = names.filter((path) => !path.startsWith("metal/"));
    expect(own.sort()).toEqual(["LICENSE", "README.md", "index.d.ts", "index.js", libraryName, "package.json"].sort());
    expect(names).toContain("metal/mrt/prelude.h");
    const manifest = (await Bun.file(join(device.folder, "package.json")).json()) as Record<string, unknown>;
    expect(manifest).toMatchObject({ name, version: packageFile.version, os: ["linux"], cpu: ["x64"] });
    expect(await Bun.file(join(device.folder, "README.md")).text()).toMatch(/needs glibc 2\.\d\d or newer/);
  });

  test("without the package, functions that need it say how to add it", () => {
    const command = `bun add --dev ${name}@${packageFile.version}`;
    expect(bun("x", "orchard", "doctor").out).toContain(`the software device is not installed\n`);
    expect(bun("x", "orchard", "doctor").out).toContain(`fix: ${command}\n`);
    expect(bun("kernel.ts").err).toContain(`\`${command}\` adds the software device`);
    expect(bunWith({ ORCHARD_BACKEND: "metal" }, "-e", `import "${packageFile.name}";`).err).toContain(
      `its dylib is in ${name}, which is not installed: \`bun add ${name}@`,
    );
  });

  test("with the package, but no compiler, a kernel says how to install one", () => {
    using _added = device.added();
    const { err, exitCode } = bun("kernel.ts");
    expect(err).toContain("`orchard toolchain install` brings one");
    expect(exitCode).toBe(1);
  });

  test("with package and compiler, kernels run, the checker works, and several files are checked", async () => {
    using _added = device.added();
    const more = withCompiler();
    expect(bunWith(more, "kernel.ts")).toEqual({ out: "3,5,7 metal\n", err: "", exitCode: 0 });
    const { err, exitCode } = bunWith({ ...more, ORCHARD_METAL_CHECK: "1" }, "kernel.ts", "past");
    expect(err).toContain("reads 4 bytes at byte 12 of buffer 'x', which is 12 bytes long");
    expect(exitCode).toBe(1);
    // a header of the package that includes others
    const start = '#include <metal_stdlib>\nusing namespace metal;\n#include "common/quotients.h"\n';
    for (const file of ["one", "two"])
      await Bun.write(join(project, `${file}.metal`), `${start}kernel void ${file}(device float *x) { x[0] = 1; }\n`);
    const both = bunWith(more, "x", "orchard", "metal", "check", "one.metal", "two.metal", "--jobs", "2");
    expect(both.out).toBe("one.metal: no problems\ntwo.metal: no problems\n");
  });
});
