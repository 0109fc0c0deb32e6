/**
 * Makes bytecode import the classes of errors and modules of Bun once. Bun's bundler would write a call of `require`
 * for each of the 200 modules that import them, and JavaScriptCore would compile Bun's `require`.
 */
import { basename, dirname, join } from "node:path";
import type { BunPlugin } from "bun";
import { exportsIn } from "./share.ts";

/** Imports of modules of Bun that many modules import. */
const importsOfBun = /^(import \{[^}]*\} from )"(?:node|bun):(fs|os|path|ffi)";$/gm;

/** The folder of modules that only the bundler sees. */
const onceFolder = (source: string): string => join(source, "bundle", "once");

/** Returns a module's text with imports of the modules that require Bun's once. No plugin can resolve Bun's modules. */
export const importingBunOnce = (source: string, text: string): string =>
  text.replace(importsOfBun, `$1"${onceFolder(source)}/$2.js";`);

/** @param source the package's `src`, compiled */
export const importingOnce = (source: string): BunPlugin => ({
  name: "importing once",
  setup(builder) {
    const ofErrors = join(onceFolder(source), "errors.js");
    builder.onResolve({ filter: /errors\.js$/ }, ({ path, importer }) =>
      importer !== ofErrors && join(dirname(importer), path) === join(source, "core/errors.js")
        ? { path: ofErrors }
        : undefined,
    );
    builder.onResolve({ filter: /\/bundle\/once\/\w+\.js$/ }, ({ path }) => ({ path }));
    builder.onLoad({ filter: /\/bundle\/once\/\w+\.js$/ }, async ({ path }) => {
      const name = basename(path, ".js");
      if (name === "errors") return requiring("../../core/errors.js", await exportsIn(source, "core/errors.js"));
      const from = `${name === "ffi" ? "bun" : "node"}:${name}`;
      return requiring(from, await importedFrom(source, from));
    });
  },
});

const requiring = (from: string, names: readonly string[]) =>
  ({ contents: `export const { ${names.join(", ")} } = require("${from}");\n`, loader: "js" }) as const;

/** Returns the names that the package's modules import from a module of Bun. */
async function importedFrom(source: string, from: string): Promise<string[]> {
  const statement = new RegExp(`^import \\{([^}]*)\\} from "${from}"`, "gm");
  const modules = [...new Bun.Glob("**/*.js").scanSync({ cwd: source })];
  const texts = await Promise.all(modules.map((module) => Bun.file(join(source, module)).text()));
  const found = texts.flatMap((text) => [...text.matchAll(statement)].flatMap(([, names = ""]) => names.split(",")));
  return [...new Set(found.map((name) => name.trim().split(" ")[0]))].filter((name) => name !== "").sort();
}
