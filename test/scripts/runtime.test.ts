/** The errors of the packed package where it can't run: in Node.js, and in a Bun that is too old. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import packageFile from "../../package.json" with { type: "json" };
import { chooser } from "../../scripts/release/bundle.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { missingRuntime, OLDEST_BUN } from "../../src/core/runtime.ts";
import { gaps, writeGaps } from "../ops/run.ts";
import { testFolder } from "../support/folder.ts";

const folder = testFolder("runtime");
const sentence = (got: string) => `orchard-metal requires Bun ${OLDEST_BUN} or newer (https://bun.sh), got ${got}`;
const node = Bun.which("node");
if (node === null) gaps.push("the package in Node.js: there is no `node` on PATH");
afterAll(writeGaps);

/** Writes the modules that are loaded first, as in the package. No other module exists. */
beforeAll(async () => {
  const transpiler = new Bun.Transpiler({ loader: "ts", target: "bun" });
  for (const name of ["core/runtime", "cli/orchard"]) {
    const text = await Bun.file(join(packageRoot, "src", `${name}.ts`)).text();
    const script = transpiler
      .transformSync(text)
      .replace(/^\/\/ @bun\n/m, "")
      .replaceAll('.ts"', '.js"');
    await Bun.write(folder.file(`src/${name}.js`), script);
  }
  const runtime = await Bun.file(folder.file("src/core/runtime.js")).text();
  await Bun.write(folder.file("src/bundle/chosen.js"), chooser(runtime));
  await Bun.write(folder.file("src/index.js"), 'import { library } from "./bundle/chosen.js";\nexport { library };\n');
  await Bun.write(folder.file("package.json"), '{ "type": "module" }\n');
});

function run(command: readonly string[]): { readonly code: number; readonly errors: string } {
  const { exitCode, stderr } = Bun.spawnSync([...command], { cwd: folder.path, stdout: "ignore", stderr: "pipe" });
  return { code: exitCode, errors: stderr.toString() };
}

describe.if(node !== null)("the package explains that Node.js is not supported", () => {
  const version = node === null ? "" : Bun.spawnSync([node, "--version"]).stdout.toString().trim().slice(1);

  test("importing the package is an error of one sentence in Node.js", () => {
    const { code, errors } = run([node!, "--input-type=module", "-e", 'await import("./src/index.js")']);
    expect(code).toBe(1);
    expect(errors).toContain(`Error: ${sentence(`Node.js ${version}`)}\n`);
  });

  test("the command prints only one sentence in Node.js", () => {
    expect(run([node!, "src/cli/orchard.js", "doctor"])).toEqual({
      code: 1,
      errors: `${sentence(`Node.js ${version}`)}\n`,
    });
  });
});

test("importing the package in an old Bun is an error of one sentence", () => {
  const program = 'Object.defineProperty(process.versions, "bun", { value: "1.2.30" }); await import("./src/index.js")';
  const { code, errors } = run([process.execPath, "-e", program]);
  expect(code).toBe(1);
  expect(errors).toContain(sentence("Bun 1.2.30; `bun upgrade` installs the newest"));
});

test("versions are compared numerically, with the version in package.json", () => {
  expect(packageFile.engines.bun).toBe(`>=${OLDEST_BUN}`);
  const runs = (bun: string) => missingRuntime({ bun, node: "24.3.0" }) === undefined;
  expect(["1.4.5", "1.4.10", "1.10.0", "2.0.0", "1.4.5-canary.1", "1.5.0+abc"].filter((own) => !runs(own))).toEqual([]);
  expect(["1.4.4", "1.3.99", "0.9.9", "1.4", ""].filter(runs)).toEqual([]);
  expect(missingRuntime({ deno: "2.5.0", node: "24.0.0" })).toEndWith("got Deno 2.5.0");
});
