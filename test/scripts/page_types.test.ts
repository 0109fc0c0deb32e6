/**
 * The TypeScript of the pages and of `test/types` type-checks with the options that `bun init` writes: programs as they
 * are, fragments with the package's names in scope.
 */
import { expect, test } from "bun:test";
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import packageFile from "../../package.json";
import { filesOf } from "../../scripts/format/files.ts";
import { typeProblems } from "../../scripts/suite/checks.ts";
import { packageRoot } from "../../src/core/paths.ts";
import * as library from "../../src/index.ts";

/** A folder whose place in a clone stays the same, so that the compiler knows the files that have not changed. */
const project = "build/page_types";
const folder = join(packageRoot, project);

/** Programs and classes as users write them, which are checked with the same options. */
const ofUsers = "test/types";

/**
 * A fragment may use values that the page only mentions, such as `model`: their types, and derived ones, are unknown.
 */
const OF_FRAGMENTS = /error TS(?:2304|2488|2552|18004|7006|7031):/;

interface Block {
  readonly place: string;
  readonly text: string;
  readonly isProgram: boolean;
}

/** The blocks of a page, without those of files that a contributor adds to `src`. */
function blocksOf(page: string): Block[] {
  const text = readFileSync(join(packageRoot, page), "utf8");
  return [...text.matchAll(/^```ts\n([\s\S]*?)^```/gm)].flatMap(({ 1: block = "", index }) => {
    if (/from "\.\.?\/|^ {2}…$/m.test(block)) return [];
    const line = text.slice(0, index).split("\n").length;
    return [{ place: `${basename(page, ".md")}-${line}`, text: block, isProgram: block.includes("import ") }];
  });
}

/** A fragment with an import of the names that it uses and does not declare. */
function withImports({ text, isProgram }: Block): string {
  if (isProgram) return text;
  const used = Object.keys(library).filter(
    (name) =>
      new RegExp(`(?<![\\w.$"'/])${name}\\b(?!\\s*:(?!:))`).test(text) &&
      !new RegExp(`(?:const|let|function|using)\\s+(?:[{[][^=]*\\b)?${name}\\b[^=\\n]*=`).test(text),
  );
  // The import is on the line of the first statement, so that line numbers stay the same.
  return `import { ${used.join(", ")} } from "${packageFile.name}"; ${text}`;
}

test("the programs of every page have the right types", async () => {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(folder, "node_modules"), { recursive: true });
  symlinkSync(packageRoot, join(folder, "node_modules", packageFile.name));
  const blocks = filesOf(["README.md", "docs/*.md"]).flatMap(blocksOf);
  expect(blocks.length).toBeGreaterThan(70);
  for (const block of blocks) writeFileSync(join(folder, `${block.place}.ts`), withImports(block));
  const compilerOptions = {
    noUnusedLocals: false,
    noUncheckedIndexedAccess: true,
    typeRoots: [join(packageRoot, "node_modules", "@types")],
    types: ["bun"],
  };
  const config = {
    extends: join(packageRoot, "tsconfig.json"),
    compilerOptions,
    include: ["*.ts", join(packageRoot, ofUsers, "*.ts")],
    exclude: [],
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
  const programs = new Set(blocks.filter(({ isProgram }) => isProgram).map(({ place }) => `${project}/${place}.ts`));
  const isProgram = (path: string) => programs.has(path) || path.startsWith(ofUsers);
  const problems = await typeProblems(project, ({ output }) =>
    output
      .split("\n")
      // The sources of the package do not satisfy `noUncheckedIndexedAccess`; its users get declarations.
      .filter((line) => line !== "" && !line.startsWith(" ") && !line.startsWith("src/"))
      .filter((line) => isProgram(line.slice(0, line.indexOf("("))) || !OF_FRAGMENTS.test(line))
      .join("\n"),
  );
  expect(problems).toBe("");
});
