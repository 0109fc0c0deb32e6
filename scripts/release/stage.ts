/**
 * Creates the folders that are packed: the package with JavaScript, declarations and kernels, and a package per
 * platform.
 */
import { existsSync } from "node:fs";
import { cp, mkdir, rm } from "node:fs/promises";
import { basename, dirname, join, normalize } from "node:path";
import packageFile from "../../package.json";
import { devicePlatforms, platformPackages } from "../../src/backend/library.ts";
import { runOrFail } from "../../src/cli/run.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { linksOf, withLinks } from "../docs/links.ts";
import { repositoryAddress } from "../docs/site.ts";
import { pruneDeclarations } from "../vendor/declarations.ts";
import { vendorPackages } from "../vendor/vendor.ts";
import { packagedModule, packedKernels, platformDeclarations, platformModule } from "./assets.ts";
import { bundleLibrary, packedModule } from "./bundle.ts";
import { compactModules, removeUnused } from "./compact.ts";
import { glibcNeeded } from "./glibc.ts";
import { declareLater } from "./later.ts";

const { name, version } = packageFile;

/** Fields of all packages. */
const common = {
  version,
  license: packageFile.license,
  author: packageFile.author,
  ...("repository" in packageFile ? { repository: packageFile.repository } : {}),
  type: "module",
  engines: packageFile.engines,
};

/** Files in the copied folders that only a clone needs. */
const forContributors = [
  ...[
    "decisions",
    "adding-an-operation.md",
    "apple.md",
    "architecture.md",
    "gallery.md",
    "performance.md",
    "performance.svg",
  ].map((name) => `docs/${name}`),
];

const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

/**
 * Compiles the sources to JavaScript and declarations, module by module, adds run-time files, and bundles the library.
 * The folder has the layout of a clone.
 *
 * @param folder is recreated
 */
export async function stageMain(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  await compile(folder);
  const copied = ["kernels", "swift/Package.swift", "swift/Sources", "docs", "README.md", "LICENSE", "CHANGELOG.md"];
  for (const path of copied) await cp(join(packageRoot, path), join(folder, path), { recursive: true });
  for (const path of forContributors) await rm(join(folder, path), { recursive: true });
  for (const page of pages) await copyPage(page, folder);
  await compactSources(folder);
  await pruneDeclarations(folder);
  await removePictures(folder);
  await compactModules(folder);
  await declareLater(folder);
  await vendorPackages(folder);
  await Bun.write(join(folder, "src", "core", "packaged.js"), packagedModule(name));
  await Bun.write(join(folder, "src", "kernels.json"), packedKernels(join(folder, "kernels")));
  await rm(join(folder, "kernels"), { recursive: true }); // the library reads their texts in kernels.json
  await bundleLibrary(folder);
  await removeUnused(folder);
  await linkDocuments(folder, repositoryPage());
  await Bun.write(join(folder, "package.json"), json(mainManifest()));
}

/**
 * Shortens sources of Swift, C and Metal without moving a line: empties lines of comments (410 kB) and removes the
 * spaces that align the ends of macros' lines (105 kB), indents by tabs (150 kB), and shortens the continuations of
 * long C++ statements (20 kB). A file with a string of several lines keeps its comments and spaces, since the string
 * may have such lines.
 */
async function compactSources(folder: string): Promise<void> {
  for (const name of new Bun.Glob("{swift,kernels}/**/*.{c,cpp,h,metal,swift}").scanSync({ cwd: folder })) {
    if (basename(name) === "Package.swift") continue; // its first comment names the version of the tools
    const file = join(folder, name);
    const text = withoutComments((await Bun.file(file).text()).replaceAll(/ +\\\n/g, " \\\n"));
    if (name.startsWith("kernels") || name.endsWith(".swift")) await Bun.write(file, withTabs(text, 4));
    else await Bun.write(file, withTabs(withShortContinuations(text), 2));
  }
}

const hasLongString = /\bR"\w*\(|"""/;

const withoutComments = (text: string): string =>
  hasLongString.test(text) ? text : text.replaceAll(/^ *\/\/.*(?<!\\)$/gm, "");

const withTabs = (text: string, width: number): string =>
  hasLongString.test(text)
    ? text
    : text.replaceAll(/^ +/gm, (all) => "\t".repeat(all.length / width) + " ".repeat(all.length % width));

const withShortContinuations = (text: string): string =>
  hasLongString.test(text) ? text : text.replaceAll(/^ {12,}/gm, " ".repeat(8));

/** Removes the documents' pictures, except those of README.md, which registries show. */
async function removePictures(folder: string): Promise<void> {
  const shown = linksOf(await Bun.file(join(folder, "README.md")).text()).map(({ target }) => target);
  for (const file of new Bun.Glob("docs/pictures/*").scanSync({ cwd: folder }))
    if (!shown.includes(file)) await rm(join(folder, file));
}

/** The repository's address on the web: package.json's, or that of the continuous integration that runs this. */
function repositoryPage(): string | undefined {
  const { repository } = packageFile as { repository?: string | { url: string } };
  const url = typeof repository === "string" ? repository : repository?.url;
  return url?.replace(/^git\+/, "").replace(/\.git$/, "") ?? repositoryAddress();
}

/**
 * Documents link to sources, tests and pages that are not packed. These links lead to the repository, at the version's
 * tag, and become plain text if its address is unknown.
 *
 * @param folder has all other files of the package
 */
export async function linkDocuments(folder: string, repository: string | undefined): Promise<void> {
  for (const file of new Bun.Glob("**/*.md").scanSync({ cwd: folder })) {
    const linkTo = (path: string) => {
      const linked = normalize(join(dirname(file), path));
      if (existsSync(join(folder, linked))) return path;
      return repository && `${repository}/blob/v${version}/${linked}`;
    };
    const text = await Bun.file(join(folder, file)).text();
    await Bun.write(join(folder, file), withLinks(text, linkTo));
  }
}

async function compile(folder: string): Promise<void> {
  const config = join(folder, "..", "tsconfig.json");
  await Bun.write(config, json(compilerSettings(folder)));
  const tsc = join(packageRoot, "node_modules", ".bin", "tsc");
  await runOrFail("Compiling the sources", [process.execPath, tsc, "-p", config], { cwd: packageRoot });
  for (const file of new Bun.Glob("src/**/*.d.ts").scanSync({ cwd: folder })) {
    const path = join(folder, file);
    await Bun.write(path, importingJavaScript(await Bun.file(path).text()));
  }
}

const compilerSettings = (folder: string) => ({
  extends: join(packageRoot, "tsconfig.json"),
  compilerOptions: {
    noEmit: false,
    declaration: true,
    rewriteRelativeImportExtensions: true, // for the JavaScript only
    rootDir: packageRoot,
    outDir: folder,
    typeRoots: [join(packageRoot, "node_modules", "@types")],
  },
  include: [join(packageRoot, "src")],
  exclude: pages.map((path) => join(packageRoot, path)),
});

/** Declarations import modules under their JavaScript names, for compilers without `allowImportingTsExtensions`. */
export const importingJavaScript = (text: string): string =>
  text.replace(/((?:\bfrom |\bimport |\bimport\(|\bmodule )")(\.[^"\n]*)\.ts"/g, '$1$2.js"');

const pages = [join("src", "train", "dashboard", "page"), join("src", "serve", "page")];

/**
 * Pages are bundled from their sources when they are shown; modules that they share with the library are JavaScript
 * here.
 */
async function copyPage(path: string, folder: string): Promise<void> {
  for (const file of new Bun.Glob("*.{ts,css,html}").scanSync(join(packageRoot, path))) {
    if (file.endsWith(".d.ts")) continue;
    const text = await Bun.file(join(packageRoot, path, file)).text();
    await Bun.write(join(folder, path, file), text.replace(/(from "\.\.\/[^"]*)\.ts"/g, '$1.js"'));
  }
}

function mainManifest() {
  const { description, keywords, dependencies, peerDependencies, peerDependenciesMeta } = packageFile;
  const exports = Object.fromEntries(
    Object.entries(packageFile.exports).map(([path, target]) => [path, packedTarget(target)]),
  );
  return {
    name,
    description,
    ...common,
    keywords,
    os: packageFile.os,
    exports,
    bin: Object.fromEntries(Object.entries(packageFile.bin).map(([key, path]) => [key, packedPath(path, ".js")])),
    dependencies,
    peerDependencies,
    peerDependenciesMeta,
    optionalDependencies: Object.fromEntries(platformPackages.map((platform) => [`${name}-${platform}`, version])),
  };
}

type Target = string | Readonly<Record<string, string>>;

const packedTarget = (target: Target): Target =>
  typeof target === "string"
    ? target
    : Object.fromEntries(
        Object.entries(target).map(([key, path]) => [
          key,
          key === "types" ? packedPath(path, ".d.ts") : packedModule(path),
        ]),
      );

/** Maps `./src/index.ts` to its path in the package. */
const packedPath = (path: string, extension: string): string => path.replace(/^\.\//, "./").replace(/\.ts$/, extension);

/**
 * The package of a platform: its dylibs and their paths.
 *
 * @param folder is recreated
 * @param dylibs paths of the files
 */
export async function stagePlatform(folder: string, platform: string, dylibs: readonly string[]): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const files = dylibs.map((path) => basename(path));
  for (const path of dylibs) await cp(path, join(folder, basename(path)));
  await cp(join(packageRoot, "LICENSE"), join(folder, "LICENSE"));
  await Bun.write(join(folder, "index.js"), platformModule(files));
  await Bun.write(join(folder, "index.d.ts"), platformDeclarations);
  await Bun.write(join(folder, "README.md"), `# ${name}-${platform}\n\nThe dylibs of \`${name}\` for ${platform}.\n`);
  await Bun.write(join(folder, "package.json"), json(platformManifest(platform)));
}

/** The platform of the software device's package. */
export const deviceTarget: string = `device-${devicePlatforms[0]}`;

/**
 * The package of the software device: the metal backend's dylib for Linux, with the headers of Metal's standard library
 * next to it, where the device looks for them.
 *
 * @param folder is recreated
 * @param dylib path of the file
 * @param headers the folder with the headers
 */
export async function stageDevice(folder: string, dylib: string, headers: string): Promise<void> {
  await stagePlatform(folder, devicePlatforms[0], [dylib]);
  await cp(headers, join(folder, "metal"), { recursive: true });
  const glibc = glibcNeeded(new Uint8Array(await Bun.file(dylib).arrayBuffer()));
  await Bun.write(join(folder, "README.md"), deviceReadme(glibc));
  await Bun.write(
    join(folder, "package.json"),
    json({
      ...platformManifest(devicePlatforms[0]),
      name: `${name}-${deviceTarget}`,
      description: `The software Metal device of ${name} for ${devicePlatforms[0]}`,
    }),
  );
}

const deviceReadme = (glibc: string): string => `# ${name}-${deviceTarget}

The software Metal device of \`${name}\`, which runs Metal kernels on a CPU under a checker, for development and tests.
Add it beside \`${name}\`:

\`\`\`sh
bun add --dev ${name}-${deviceTarget}
bunx orchard toolchain install   # clang 17 or newer and ld.lld, where they are not on PATH
bunx orchard doctor
\`\`\`

It needs glibc ${glibc} or newer and libstdc++. Programs select it with \`ORCHARD_BACKEND=metal\`,
\`setBackend("metal")\` or \`metalKernel\`. Bundles and executables do not take it.
`;

function platformManifest(platform: string) {
  const [os, cpu, libc = "glibc"] = platform.split("-");
  return {
    name: `${name}-${platform}`,
    description: `The dylibs of ${name} for ${platform}`,
    ...common,
    os: [os],
    cpu: [cpu],
    ...(os === "linux" ? { libc: [libc] } : {}),
    exports: { ".": { types: "./index.d.ts", default: "./index.js" }, "./package.json": "./package.json" },
  };
}
