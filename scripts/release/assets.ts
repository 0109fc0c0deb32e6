/** Generates the files of the package that replace sources: JavaScript that imports dylibs and kernels. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { platformPackages } from "../../src/backend/library.ts";

/**
 * Returns the JavaScript of `src/core/packaged.ts`. Each `require` is in a separate `try` with its full name, so that a
 * bundler includes the installed packages and skips the others without an error. The software device's name is
 * concatenated, so that no bundler includes it: it is for development, and reads its headers from its folder.
 */
export function packagedModule(name: string): string {
  const finders = platformPackages.map(
    (platform) =>
      `  "${platform}": () => { try { return require("${name}-${platform}").dylibs; } catch { return undefined; } },\n`,
  );
  return `const finders = {\n${finders.join("")}};
const device = (platform) => {
  try { return require(["${name}", "device", platform].join("-")).dylibs; } catch { return undefined; }
};
const found = {};
export const packaged = {
  dylib: (platform, name) => (found[platform + name] ??= finders[platform]?.()?.[name] ?? device(platform)?.[name]),
  kernels: () => (kernels ??= unpacked(require("../kernels.json").zstd)),
};
let kernels;
const unpacked = (text) => JSON.parse(Bun.zstdDecompressSync(Buffer.from(text, "base64")).toString());
`;
}

/**
 * Returns the JSON that bundles contain: the text of every file in `kernels/`, by path, compressed.
 *
 * @param folder has the kernels, as they are packed
 */
export function packedKernels(folder: string): string {
  const bytes = Bun.zstdCompressSync(JSON.stringify(kernelTexts(folder)), { level: 19 });
  return JSON.stringify({ zstd: bytes.toBase64() });
}

/** Returns the texts in {@link packedKernels}. */
export function unpackedKernels(json: string): Record<string, string> {
  const { zstd } = JSON.parse(json) as { zstd: string };
  return JSON.parse(Bun.zstdDecompressSync(Uint8Array.fromBase64(zstd)).toString()) as Record<string, string>;
}

function kernelTexts(folder: string): Record<string, string> {
  const files = [...new Bun.Glob("**/*.{metal,h}").scanSync({ cwd: folder })].sort();
  return Object.fromEntries(files.map((file) => [file, readFileSync(join(folder, file), "utf8")]));
}

/**
 * Returns the JavaScript of a platform's package. `type: "file"` returns a path; a bundle copies the file next to
 * itself, and an executable embeds it. A bundle's path is relative to the bundle.
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
