/** What packing writes in place of files of the sources: JavaScript that imports dylibs and kernels. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { platformPackages } from "../../src/backend/library.ts";
import { packageRoot } from "../../src/core/paths.ts";

/**
 * The JavaScript of `src/core/packaged.ts`. Each `require` stands in a `try` of its own, with its name in full: so a
 * bundler takes the packages that are installed, and leaves out the others without an error. The software device's name
 * is put together, so that no bundler takes it: it is for development, and reads its headers from its folder.
 */
export function packagedModule(name: string): string {
  const finders = platformPackages.map(
    (platform) =>
      `  "${platform}": () => { try { return require("${name}-${platform}").dylibs; } catch { return undefined; } },\n`,
  );
  return `const finders = {\n${finders.join("")}};
const found = new Map();
const device = (platform) => {
  try { return require(["${name}", "device", platform].join("-")).dylibs; } catch { return undefined; }
};
export const packaged = {
  dylibs(platform) {
    if (!found.has(platform)) {
      const [own, more] = [finders[platform]?.(), device(platform)];
      found.set(platform, own || more ? { ...more, ...own } : undefined);
    }
    return found.get(platform);
  },
  kernels: () => require("../kernels.json"),
};
`;
}

/** The text of every file in `kernels/`, by its path there. */
export function kernelTexts(): Record<string, string> {
  const folder = join(packageRoot, "kernels");
  const files = [...new Bun.Glob("**/*.{metal,h}").scanSync({ cwd: folder })].sort();
  return Object.fromEntries(files.map((file) => [file, readFileSync(join(folder, file), "utf8")]));
}

/**
 * The JavaScript of a platform's package. `type: "file"` gives a path, and has a bundle copy the file beside itself and
 * an executable hold it. A bundle's path is relative to the bundle.
 */
export function platformModule(files: readonly string[]): string {
  const imports = files.map((file, index) => `import file${index} from "./${file}" with { type: "file" };\n`);
  const entries = files.map((file, index) => `  "${file}": absolute(file${index}),\n`);
  return `import { isAbsolute, join } from "node:path";
${imports.join("")}
const absolute = (path) => (isAbsolute(path) ? path : join(import.meta.dir, path));

export const dylibs = {\n${entries.join("")}};
`;
}

export const platformDeclarations = `/** Paths of the dylibs, by file name. */
export declare const dylibs: Readonly<Record<string, string>>;
`;
