/** Bundles `walk.ts` for a project that depends on the package: it imports the package instead of the sources. */
import { join } from "node:path";
import type { BunPlugin } from "bun";
import packageFile from "../../package.json";
import { packageRoot } from "../../src/core/paths.ts";
import { Tensor } from "../../src/tensor/tensor.ts";
import { calls, makeOperands, operationNames } from "../ops/calls.ts";
import type { Written } from "./walk.ts";

/** Replaces `src/index.ts` by the package. Fixtures are still read from the clone. Other sources are not allowed. */
const withPackage: BunPlugin = {
  name: "the package in place of the sources",
  setup(builder) {
    builder.onResolve({ filter: /\/src\// }, ({ path, importer }) => {
      if (path.endsWith("/src/index.ts")) return { path: packageFile.name, external: true };
      if (path.endsWith("/src/core/paths.ts")) return { path: "paths", namespace: "clone" };
      throw new Error(`${importer} imports ${path}, which the package does not export`);
    });
    builder.onLoad({ filter: /^paths$/, namespace: "clone" }, () => ({
      contents: `export const packageRoot = ${JSON.stringify(packageRoot)};`,
      loader: "js",
    }));
  },
};

/** Represents a value as JSON, for another copy of the library. */
function written(value: unknown): Written {
  if (Tensor.isTensor(value)) return { tensor: numbersOf(value.toArray()), dtype: value.dtype };
  if (Array.isArray(value)) return { list: value.map(written) };
  if (value instanceof Float32Array) return { floats: [...value] };
  if (typeof value === "bigint") return { bigint: String(value) };
  if (value === null || ["number", "string", "boolean"].includes(typeof value))
    return { plain: value as number | string | boolean | null };
  if (typeof value === "object" && Object.getPrototypeOf(value) === Object.prototype)
    return { options: Object.fromEntries(Object.entries(value).map(([name, own]) => [name, written(own)])) };
  throw new Error(`can't write ${Bun.inspect(value)} as JSON`);
}

const numbersOf = (value: unknown): unknown =>
  Array.isArray(value) ? value.map(numbersOf) : typeof value === "object" ? value : Number(value);

/** Writes `walk.js` and the files that it reads into a folder. */
export async function writeWalk(folder: string): Promise<void> {
  const { outputs } = await Bun.build({
    entrypoints: [join(import.meta.dir, "walk.ts")],
    target: "bun",
    plugins: [withPackage],
  });
  await Bun.write(join(folder, "walk.js"), outputs[0]);
  const rows = operationNames.map((name) => [name, calls[name](makeOperands(4)).map(written)]);
  await Bun.write(join(folder, "operations.json"), JSON.stringify(Object.fromEntries(rows)));
}
