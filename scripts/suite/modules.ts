/**
 * Packs the library's modules for the child processes of tests, as bytecode. A process that imports `src/index.ts`
 * loads 1,400 modules, which takes half a second of processor time, and the suite starts hundreds of such processes.
 * With the pack it takes a fifth. Each module stays a module with all of its exports, so that a program may import any
 * of them (`test/support/packed.ts`).
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { contentKey } from "../content_cache.ts";
import { Failure } from "../failure.ts";

/** The library's entry. What it imports when it is loaded is packed. */
const ENTRY = "src/index.ts";

/** Locates the library's folder from its own place, so it is not packed. */
const PLACE = "src/core/place.ts";

interface Import {
  readonly kind: string;
  readonly path: string;
}

interface Inputs {
  readonly [path: string]: { readonly imports: readonly Import[] };
}

/** A module that makes a process take the packed modules. */
const preloaded = `import { takeFrom } from ${JSON.stringify(join(packageRoot, "test", "support", "packed.ts"))};
takeFrom(require("./modules.js"));
`;

/**
 * Builds the pack unless it is there, and returns the module that processes preload.
 *
 * @throws {Failure} if Bun can't bundle the modules
 */
export async function packModules(): Promise<string> {
  const parent = join(packageRoot, "build", "modules");
  const folder = join(parent, keyOfSources());
  const preload = join(folder, "preload.ts");
  if (existsSync(preload)) return preload;
  for (const old of existsSync(parent) ? readdirSync(parent) : []) rmSync(join(parent, old), { recursive: true });
  mkdirSync(folder, { recursive: true });
  const entry = join(folder, "entry.ts");
  await Bun.write(entry, entryOf(await modulesOf(ENTRY)));
  await bundle({ entrypoints: [entry], outdir: folder, naming: "modules.js", format: "cjs", bytecode: true });
  await Bun.write(preload, preloaded);
  return preload;
}

function keyOfSources(): string {
  const files = ["bun.lock", ...new Bun.Glob("src/**/*.{ts,json}").scanSync({ cwd: packageRoot })].sort();
  const texts = files.flatMap((file) => [file, readFileSync(join(packageRoot, file))]);
  return contentKey([Bun.version_with_sha, packageRoot, ...texts]).slice(0, 16);
}

/** The modules of `src` that a module imports when it is loaded, itself included. */
async function modulesOf(entry: string): Promise<string[]> {
  const { metafile } = await bundle({ entrypoints: [join(packageRoot, entry)], metafile: true });
  const inputs = (metafile as unknown as { readonly inputs: Inputs }).inputs;
  const found = new Set([entry]);
  for (const file of found)
    for (const { kind, path } of inputs[file]?.imports ?? [])
      if (kind === "import-statement" && path.startsWith("src/") && path !== PLACE) found.add(path);
  return [...found].sort();
}

/** A module whose exports are the modules' exports, by path. */
function entryOf(modules: readonly string[]): string {
  const imports = modules.map((path, at) => `import * as m${at} from ${JSON.stringify(join(packageRoot, path))};\n`);
  const members = modules.map((path, at) => `  ${JSON.stringify(path)}: m${at},\n`);
  return `${imports.join("")}module.exports = {\n${members.join("")}};\n`;
}

async function bundle(options: Bun.BuildConfig): Promise<Bun.BuildOutput> {
  const built = await Bun.build({
    ...options,
    ...({ target: "bun", throw: false } as const),
    root: packageRoot,
    plugins: [
      {
        name: "place",
        setup(build) {
          build.onResolve({ filter: /\/place\.ts$/ }, () => ({ path: join(packageRoot, PLACE), external: true }));
        },
      },
    ],
  });
  if (!built.success) throw new Failure(`The modules can't be packed for tests: ${built.logs.join("\n")}`);
  return built;
}
