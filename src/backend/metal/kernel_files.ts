/** The sources of the built-in kernels, in `kernels/` or embedded in the package's JavaScript. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { getOrMake } from "../../core/collections.ts";
import { packaged } from "../../core/packaged.ts";
import { packageRoot } from "../../core/paths.ts";

const folder = join(packageRoot, "kernels");
const texts = new Map<string, string>();
let names: readonly string[] | undefined;

/** The language version of each built-in kernel file that requires more than the default of libraries. */
export const kernelVersions: Readonly<Record<string, `${number}.${number}`>> = { "matmul/tensor.metal": "4.0" };

/** Returns a file's text by its path in `kernels/`, such as `"unary/unary.metal"`. */
export const kernelText = (path: string): string =>
  getOrMake(texts, path, () => packaged?.kernels()[path] ?? readFileSync(join(folder, path), "utf8"));

/** Returns all built-in headers by the name with which kernels include them. */
export function headerTexts(): Record<string, string> {
  names ??= (
    packaged ? Object.keys(packaged.kernels()) : readdirSync(folder, { recursive: true, encoding: "utf8" })
  ).filter((name) => name.endsWith(".h"));
  return Object.fromEntries(names.map((name) => [name, kernelText(name)]));
}
