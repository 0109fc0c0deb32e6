/** The cost of importing the library before a program does anything: modules of Bun, and loops. */
import { beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { parseSync } from "oxc-parser";
import packageFile from "../../package.json";
import { packageRoot } from "../../src/core/paths.ts";

let sources: string[];
let bundle: string;
beforeAll(async () => {
  const { dependencies, devDependencies } = packageFile;
  const external = Object.keys({ ...dependencies, ...devDependencies }).flatMap((name) => [name, `${name}/*`]);
  const entrypoints = [join(packageRoot, "src", "index.ts")];
  const built = await Bun.build({ entrypoints, target: "bun", external, metafile: true });
  bundle = await built.outputs[0].text();
  sources = Object.keys(built.metafile!.inputs).map((path) => join(packageRoot, path));
});

test("importing the library loads only these modules of Bun and tinyqueue", () => {
  const loaded = [...bundle.matchAll(/^import .* from "([^"]+)";$/gm)].map(([, name]) => name);
  const expected = ["bun:ffi", "fs", "os", "path", "timers/promises", "tinyqueue"];
  expect([...new Set(loaded)].sort()).toEqual(expected);
});

test("no module has a loop outside of functions: it would make Bun compile the whole bundle", async () => {
  expect(sources.length).toBeGreaterThan(500);
  const loops = /^(?:For|ForIn|ForOf|While|DoWhile)Statement$/;
  for (const path of sources) {
    const { program } = parseSync(path, await Bun.file(path).text());
    expect([path, program.body.filter(({ type }) => loops.test(type)).length]).toEqual([path, 0]);
  }
});
