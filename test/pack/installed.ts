/** Tests of the package in a project: every exported name, the programs of its documents, its commands. */
import { beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, join } from "node:path";
import packageFile from "../../package.json" with { type: "json" };
import { packageRoot } from "../../src/core/paths.ts";
import * as library from "../../src/index.ts";
import { writeModel } from "../serve/folder.ts";
import { programsOf, promisedText, writeBooks } from "../support/readme.ts";
import { writeWalk } from "./bundle_walk.ts";
import { commandLines } from "./commands.ts";
import {
  bun,
  bunWith,
  device,
  environment,
  folder,
  hasDevice,
  hasMetal,
  installed,
  project,
  spoiled,
  withCompiler,
} from "./project.ts";
import type { Walked } from "./walk.ts";

/** Provides a compiler of kernels, if there is one, until the result is disposed of. */
function kernels(): Disposable & { readonly more: Record<string, string>; readonly by: "metal" | "none" } {
  if (!hasDevice) return { more: {}, by: hasMetal ? "metal" : "none", [Symbol.dispose]: () => undefined };
  const added = device.added();
  return { more: withCompiler(), by: "metal", [Symbol.dispose]: () => added[Symbol.dispose]() };
}

/** The exported names as the walk prints them: members of a namespace follow its name, as in `nn.Linear`. */
const exportedNames = (values: object, room = ""): string[] =>
  Object.entries(values).flatMap(([key, value]) =>
    Object.prototype.toString.call(value) === "[object Module]"
      ? exportedNames(value as object, `${room}${key}.`)
      : [`${room}${key}`],
  );

/** The packages and copies of packages that bundles import: `sharp`, `../vendor/fflate.js`. */
async function importsOf(...bundles: readonly string[]): Promise<string[]> {
  const texts = bundles.map((bundle) => Bun.file(join(installed, "src", "bundle", bundle)).text());
  const text = (await Promise.all(texts)).join("\n");
  const found = [...text.matchAll(/\b(?:from|import\(|require\()"([a-z@][\w@/.-]*|\.\.\/vendor\/\w+\.js)"/g)].map(
    ([, name]) => name,
  );
  return [...new Set(found)].filter((name) => !isBuiltin(name)).sort();
}

const packageOf = (path: string): string => path.split("/", path.startsWith("@") ? 2 : 1).join("/");

/** A line for every name that the package exports, with the bytecode and without. */
export function testEntries(): void {
  describe("every exported name works", () => {
    beforeAll(async () => {
      await writeWalk(project);
      if (hasDevice) await device.stage();
      for (const name of Object.keys(packageFile.peerDependencies)) {
        const link = join(project, "node_modules", name);
        mkdirSync(dirname(link), { recursive: true });
        symlinkSync(join(packageRoot, "node_modules", name), link);
      }
    });

    function walked(more: Readonly<Record<string, string>>, by: string): Walked {
      const scratch = mkdtempSync(join(folder, "walk-"));
      const { out, err, exitCode } = bunWith(more, "walk.js", scratch, by);
      expect([exitCode, exitCode === 0 ? "" : err]).toEqual([0, ""]);
      return JSON.parse(out) as Walked;
    }

    test.each(["bytecode.js", "library.js"])("every exported name of %s works", async (bundle) => {
      const packages = await importsOf("library.js", "numerics.js", "namespaces.js");
      expect(packages.length).toBeGreaterThan(5);
      const later = ["numerics", "namespaces"];
      expect(await importsOf("bytecode.js", ...later.map((name) => `${name}_bytecode.js`))).toEqual(packages);
      const path = join(installed, "src", "bundle", "bytecode.js");
      using _spoiled = spoiled([path], () => bundle === "library.js" && rmSync(path));
      using device = kernels();
      const { called, problems, loaded } = walked(device.more, device.by);
      expect(problems).toEqual([]);
      expect([...called].sort()).toEqual(exportedNames(library).sort());
      const bundles = loaded.filter((file) =>
        /\/bundle\/(?:library|(?:numerics|namespaces|bytecode)(?:_bytecode)?)\.js$/.test(file),
      );
      const form = bundle === "library.js" ? ".js" : "_bytecode.js";
      const expected = [bundle, ...later.map((name) => name + form)].sort();
      expect(bundles.sort()).toEqual(expected.map((file) => join(installed, "src", "bundle", file)));
      // The lines use every package that the bundle imports.
      const isLoaded = (name: string) =>
        name.startsWith("..")
          ? loaded.includes(join(installed, "src", "bundle", name))
          : loaded.some((file) => file.includes(`/${packageOf(name)}/`));
      expect(packages.filter((name) => !isLoaded(name))).toEqual([]);
    });
  });
}

/** The first programs of the documentation. */
export function testDocuments(): void {
  describe.each(["README.md", "docs/start.md", "docs/training.md"])("the programs of %s run", (document) => {
    const programs = programsOf(document);
    beforeAll(() => writeBooks(project));

    test("the document has several programs", () => expect(programs.length).toBeGreaterThan(2));

    for (const example of programs)
      test.if(hasDevice || hasMetal || !example.program.includes("metalKernel"))(example.title, () => {
        using device = kernels();
        const more = { ORCHARD_BACKEND: "cpu", XDG_CACHE_HOME: join(folder, "documents"), ...device.more };
        expect(bunWith(more, "-e", example.program)).toEqual({ out: promisedText(example), err: "", exitCode: 0 });
      });
  });
}

/** One call of every command. */
export function testCommands(): void {
  describe("each command of the package runs", () => {
    const model = join(folder, "model");
    const lines = commandLines(model);
    const program = join(project, "node_modules", ".bin", "orchard");
    const more = {
      XDG_CACHE_HOME: join(folder, "commands"),
      ORCHARD_BACKEND: "cpu",
      HF_ENDPOINT: "http://127.0.0.1:9",
      HF_HUB_OFFLINE: "0",
    };
    beforeAll(async () => {
      await Promise.all([writeModel(model), writeBooks(project)]);
    });

    test("the list of commands is complete", () => {
      const { out } = bun("x", "orchard", "--help");
      const names = [...out.matchAll(/^ {2}([a-z]+) /gm)].map(([, name]) => name);
      expect(names.sort()).toEqual([...Object.keys(lines), "help", "serve"].sort());
    });

    test.each(Object.entries(lines))(
      "the command %s runs",
      (_, { words, says, exitCode: expected = 0, input = "" }) => {
        const { stdout, stderr, exitCode } = Bun.spawnSync([process.execPath, program, ...words], {
          cwd: project,
          env: { ...environment, ...more },
          stdin: new TextEncoder().encode(input),
        });
        const text = `${stdout}${stderr}`;
        expect([exitCode, exitCode === expected ? "" : text]).toEqual([expected, ""]);
        expect(text).toMatch(says);
        expect(text).not.toMatch(/(?:Type|Reference|Syntax)Error|Cannot find/);
      },
    );

    test("the command serve runs", () =>
      expectServing([process.execPath, program, "serve", model, "--port", "0"], more));
  });
}

/** Starts a server, and expects a completion and metrics from it. */
async function expectServing(command: string[], variables: Readonly<Record<string, string>>): Promise<void> {
  const child = Bun.spawn(command, {
    cwd: project,
    env: { ...environment, ...variables },
    stderr: "pipe",
  });
  try {
    const url = await addressIn(child.stdout);
    const answer = await fetch(new URL("/v1/completions", url), {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "model", prompt: "the", max_tokens: 2 }),
    });
    expect([answer.status, ((await answer.json()) as { usage: object }).usage]).toEqual([
      200,
      expect.objectContaining({ completion_tokens: 2 }),
    ]);
    expect(await (await fetch(new URL("/metrics", url))).text()).toContain("orchard_");
  } finally {
    child.kill();
    await child.exited;
  }
}

/** The entries `serve` and `train`, which load other modules at the first call. */
export function testSeparateEntries(): void {
  test("the entries serve and train load their modules at the first call", async () => {
    const model = join(project, "entry-model");
    await Promise.all([writeModel(model), writeBooks(project)]);
    const text = `import { serve } from "${packageFile.name}/serve";
      import { train } from "${packageFile.name}/train";
      const loaded = () => Object.keys(require.cache).filter((path) => path.includes("${packageFile.name}/")).length;
      const before = loaded();
      const settings = { preset: "tiny", data: ["books"], steps: 2, sampleTokens: 1, out: "entry-run" };
      const { reason, step } = await train(settings);
      await using server = await serve("entry-model", { port: 0 });
      const { status } = await fetch(server.url + "/health");
      console.log(before, loaded() > 20, reason, step, server.name, status);`;
    await Bun.write(join(project, "entries-apart.js"), text);
    expect(bun("entries-apart.js")).toEqual({ out: "2 true finished 2 entry-model 200\n", err: "", exitCode: 0 });
  });
}

/** The first address that a program prints. @throws with what it printed if it ends without one */
async function addressIn(stream: ReadableStream<Uint8Array>): Promise<string> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of stream) {
    text += decoder.decode(chunk, { stream: true });
    const found = /http:\/\/[\d.]+:\d+/.exec(text);
    if (found) return found[0];
  }
  throw new Error(`no address in ${JSON.stringify(text)}`);
}
