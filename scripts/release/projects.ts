/** Creates empty projects of every kind, and adds the packages from a registry; the dylib must compute in each. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import packageFile from "../../package.json";
import { type RunOptions, run, runOrFail, tail } from "../../src/cli/run.ts";
import { Failure } from "../failure.ts";
import { releaseFolder } from "./dylib.ts";
import { publish, readTarball } from "./publish.ts";
import { type Registry, startRegistry } from "./registry.ts";
import { deviceTarget } from "./stage.ts";

const { name, version } = packageFile;

/** The output of a program, the same in every kind of project. */
const printed = '{"product":[[7,10],[15,22]],"gradient":[[4,6],[4,6]],"backends":["cpu"]}';

const computation = `import { codepaths, tensor, withBackend } from "${name}";

export function compute(): string {
  const a = tensor([[1, 2], [3, 4]], { requiresGrad: true });
  return withBackend("cpu", () => {
    const product = a.matmul(tensor([[1, 2], [3, 4]]));
    a.mul(tensor([[4, 6], [4, 6]])).sum().backward();
    const gradient = a.grad;
    if (!gradient) throw new Error("no gradient");
    const backends = [...new Set(codepaths().map(({ backend }) => backend))];
    return JSON.stringify({ product: product.toArray(), gradient: gradient.toArray(), backends });
  });
}
`;

const files: Readonly<Record<string, string>> = {
  "compute.ts": computation,
  "index.ts": `import { compute } from "./compute";\n\nconsole.log(compute());\n`,
  "worker.ts": `import { compute } from "./compute";\n\ndeclare const self: Worker;\nself.postMessage(compute());\n`,
  "threads.ts": `const worker = new Worker(new URL("./worker.ts", import.meta.url).href);
worker.onmessage = ({ data }: MessageEvent<string>) => {
  console.log(data);
  worker.terminate();
};
`,
  "compute.test.ts": `import { expect, test } from "bun:test";
import { tensor } from "${name}";
import "${name}/test";
import { compute } from "./compute";

test("computes", () => {
  const text = compute();
  expect(JSON.parse(text).product).toEqual([[7, 10], [15, 22]]);
  console.log(text);
});

test("matchers", () => {
  expect(tensor([1])).toEqual(tensor([1]));
  expect(tensor([1])).not.toEqual(tensor([2]));
  expect(tensor([1])).toBeCloseToTensor(tensor([1]));
  expect(tensor([1])).toHaveShape([1]);
});
`,
  "items.ts": `export default () => ({ length: 2, get: (index: number) => 10 * index });
`,
  "loaded.ts": `import { data, Tensor } from "${name}";
import { compute } from "./compute";

const source = import.meta.resolve("${name}").replace(/^file:\\/\\/|index\\.js$/g, "");
const loaded = Object.keys(require.cache).filter((path) => path.startsWith(source));
if (loaded.length > 7) throw new Error("expected the library in one file, got " + loaded.join());
using items = await data.openWorkerDataset<number>(new URL("./items.ts", import.meta.url));
if ((await items.get(1)) !== 10 || Tensor.name !== "Tensor") throw new Error("expected item 1 to be 10");
console.log(compute());
`,
  "hot.ts": `import { compute } from "./compute";

declare global { var rounds: number | undefined; }
globalThis.rounds = (globalThis.rounds ?? 0) + 1;
console.log(compute());
if (globalThis.rounds === 2) process.exit(0);
await Bun.write(import.meta.path, await Bun.file(import.meta.path).text() + "// again\\n");
setTimeout(() => process.exit(1), 30_000);
`,
};

/** The strictest compiler options, added to those of `bun init`. */
const strictest = {
  compilerOptions: {
    lib: ["ESNext"],
    target: "ESNext",
    module: "Preserve",
    moduleDetection: "force",
    types: ["bun"],
    moduleResolution: "bundler",
    verbatimModuleSyntax: true,
    noEmit: true,
    strict: true,
    skipLibCheck: false,
    erasableSyntaxOnly: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    noFallthroughCasesInSwitch: true,
    noImplicitOverride: true,
    noPropertyAccessFromIndexSignature: true,
  },
};

/**
 * Releases the packages to a local registry as {@link release} does to npm, tries each kind of project, and with the
 * software device a kernel; then makes the version `latest`.
 *
 * @throws {Failure}
 */
export async function tryPackages(tarballs: readonly string[]): Promise<void> {
  await using registry = await startRegistry(join(releaseFolder, "registry"));
  await publishTwice(dirname(tarballs[0]), registry);
  const folder = await mkdtemp(join(tmpdir(), "orchard-project-"));
  try {
    await makeProject(folder, registry, `${name}@next`);
    for (const [kind, body] of Object.entries(kinds)) {
      await body(folder);
      console.log(`  ${kind}: passed`);
    }
    if (tarballs.some((path) => basename(path).startsWith(`${name}-${deviceTarget}`))) {
      await tryDevice(folder, registry);
      console.log("  a kernel on the software device, checked: passed");
    }
    await tryLatest(tarballs, registry);
    console.log(`  ${name} without a tag, once its version is latest: passed`);
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Publishes as a release does, and repeats it, which must publish nothing. */
async function publishTwice(folder: string, registry: Registry): Promise<void> {
  for (const line of await publish(folder, { local: registry.environment })) console.log(`  ${line}`);
  const again = await publish(folder, { local: registry.environment });
  const others = again.filter((line) => !line.endsWith(": it is published already"));
  if (others.length > 0) throw new Failure(`expected a second run to publish nothing, got:\n${others.join("\n")}`);
}

/** Moves the tag `latest` as a person does after a release, and adds the package without a tag to an empty project. */
async function tryLatest(tarballs: readonly string[], registry: Registry): Promise<void> {
  const { environment } = registry;
  for (const path of tarballs) {
    const own = await readTarball(path);
    const tagged = `${own.name}@${own.version}`;
    await runOrFail(`Tagging ${tagged}`, ["npm", "dist-tag", "add", tagged, "latest"], { environment });
  }
  await inEmptyFolder(async (folder) => {
    await makeProject(folder, registry, name);
    await prints(folder, ["index.ts"]);
  });
}

const kernel = `import { metalKernel } from "${name}";

const kernel = metalKernel({
  name: "odd",
  source: "#include <metal_stdlib>\\nkernel void odd(const device float *x, device float *y, " +
    "uint i [[thread_position_in_grid]]) { y[i] = 2 * x[i] + 1; }",
});
const { y } = kernel.run({ x: new Float32Array([1, 2]), y: new Float32Array(2) }, { grid: 2 }).outputs;
console.log(y.join());
`;

/** A correct kernel, and one that reads past its buffer, which must fail a checked run. */
async function tryDevice(folder: string, registry: Registry): Promise<void> {
  await bun(folder, ["add", "--dev", `${name}-${deviceTarget}@next`], { environment: settings(folder, registry) });
  await bun(folder, ["x", "orchard", "toolchain", "install"]);
  const environment = { ORCHARD_METAL_CHECK: "1" };
  for (const [text, expected] of [
    [kernel, 0],
    [kernel.replace("x[i]", "x[i + 1]"), 1],
  ] as const) {
    await Bun.write(join(folder, "kernel.ts"), text);
    const { status, output } = await run([process.execPath, "kernel.ts"], { cwd: folder, environment });
    if (status === expected && (expected === 1 ? output.includes("[out-of-bounds]") : output === "3,5\n")) continue;
    throw new Failure(`kernel.ts ended with ${status}, expected ${expected}:\n${tail(output)}`);
  }
}

const settings = (folder: string, registry: Registry) => ({
  ...registry.environment,
  BUN_INSTALL_CACHE_DIR: join(folder, ".cache"),
});

/** Makes a project with an empty cache. @param added the package, with a tag if it is not `latest` */
async function makeProject(folder: string, registry: Registry, added: string): Promise<void> {
  const environment = settings(folder, registry);
  await bun(folder, ["init", "--yes"], { environment });
  await bun(folder, ["add", added], { environment });
  for (const [file, text] of Object.entries(files)) await Bun.write(join(folder, file), text);
}

/** Each function throws an error if its output differs from the output of the others. */
const kinds: Readonly<Record<string, (folder: string) => Promise<unknown>>> = {
  "a program": (folder) => prints(folder, ["index.ts"]),
  "types, by the options of bun init": typechecks,
  "types, by the strictest options": async (folder) => {
    await Bun.write(join(folder, "tsconfig.json"), JSON.stringify(strictest));
    await typechecks(folder);
  },
  "a worker": (folder) => prints(folder, ["threads.ts"]),
  "one file, and threads of a data set": (folder) => prints(folder, ["loaded.ts"]),
  "bun test": (folder) => prints(folder, ["test"]),
  "bun --hot": (folder) => prints(folder, ["--hot", "hot.ts"], 2),
  "the command": (folder) => tryCommand(folder),
  "bun build": async (folder) => {
    await bun(folder, ["build", "--target=bun", "index.ts", "--outdir", "out"]);
    await prints(join(folder, "out"), ["index.js"]);
  },
  "bun build --compile": async (folder) => {
    await bun(folder, ["build", "--compile", "index.ts", "--outfile", "program"]);
    await inEmptyFolder((empty) => expectPrinted("./program", [join(folder, "program")], empty));
  },
};

/** The command reports the packed dylib, and trains and continues a text with it. */
async function tryCommand(folder: string): Promise<void> {
  await Bun.write(join(folder, "text.txt"), "the quick brown fox jumps over the lazy dog\n".repeat(40));
  const small = ["--layers", "1", "--heads", "1", "--width", "32", "--context", "8", "--batch", "1", "--steps", "2"];
  for (const [words, expected] of [
    [["--version"], new RegExp(version.replaceAll(".", "\\."))],
    [["doctor"], /✓ cpu /],
    [["train", "text.txt", ...small, "--backend", "cpu", "--out", "run"], /loss/],
    [["generate", "run", "--prompt", "the", "--tokens", "3", "--backend", "cpu"], /^the/m],
  ] as const) {
    const { status, output } = await run([process.execPath, "x", "orchard", ...words], { cwd: folder });
    if (status !== 0 || !expected.test(output))
      throw new Failure(`orchard ${words.join(" ")} ended with ${status}, expected ${expected}:\n${tail(output)}`);
  }
}

/** Uses the repository's version of TypeScript, since `bun init` may install any. */
async function typechecks(folder: string): Promise<void> {
  const tsc = join(import.meta.dir, "..", "..", "node_modules", ".bin", "tsc");
  await bun(folder, [tsc, "--noEmit"]);
}

async function inEmptyFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "orchard-empty-"));
  try {
    await body(folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

const prints = (folder: string, words: readonly string[], times = 1): Promise<void> =>
  expectPrinted(`bun ${words.join(" ")}`, [process.execPath, ...words], folder, times);

async function expectPrinted(what: string, command: readonly string[], cwd: string, times = 1): Promise<void> {
  const { status, output } = await run(command, { cwd });
  const lines = output.split("\n").filter((line) => line === printed);
  if (status === 0 && lines.length === times && !output.includes("[orchard]")) return;
  throw new Failure(`${what} ended with ${status}, expected ${times} times ${printed}, got:\n${tail(output)}`);
}

async function bun(cwd: string, words: readonly string[], options: RunOptions = {}): Promise<void> {
  const { status, output } = await run([process.execPath, ...words], { cwd, ...options });
  if (status !== 0) throw new Failure(`bun ${words.join(" ")} ended with ${status}:\n${tail(output)}`);
}
