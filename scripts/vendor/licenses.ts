/** The licenses of packages that the published package holds copies of. */
import { readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { getOrMake } from "../../src/core/collections.ts";
import { Failure } from "../failure.ts";

/** A package that is copied in part. */
export interface VendoredPackage {
  readonly name: string;
  readonly version: string;
  /** The SPDX expression of the package's license. */
  readonly license: string;
  /** The texts of licenses and notices, by file name. */
  readonly texts: Readonly<Record<string, string>>;
}

/** Licenses that allow a bundled copy if their text comes with it. */
const allowed = new Set(["Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MIT AND OFL-1.1"]);

/**
 * Returns the package of a file in `node_modules`.
 *
 * @throws {Failure} if it has no text of a license, or one that does not allow a copy
 */
export async function licenseOf(path: string): Promise<VendoredPackage> {
  const folder = packageFolder(path);
  const { name, version, license } = (await Bun.file(join(folder, "package.json")).json()) as VendoredPackage;
  if (!allowed.has(license)) throw new Failure(`${name}: a copy is not allowed under ${license}; make it a dependency`);
  const files = (await readdir(folder)).filter((file) => /^(?:licen[cs]e|notice|copying)/i.test(file)).sort();
  if (files.length === 0) throw new Failure(`${name}: there is no file with its license; make it a dependency`);
  const texts = await Promise.all(
    files.map(async (file) => [file, await Bun.file(join(folder, file)).text()] as const),
  );
  return { name, version, license, texts: Object.fromEntries(texts) };
}

/** The folder of the innermost package of a file. */
const packageFolder = (path: string): string =>
  /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? dirname(path);

/** A document with the packages by name, each once, and their licenses. */
export function licenseText(packages: readonly VendoredPackage[]): string {
  const byName = new Map(packages.map((each) => [`${each.name} ${each.version}`, each] as const));
  const titles = new Map<string, string>();
  const sections = [...byName]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([title, each]) => sectionOf(title, each, titles));
  return `# Licenses of bundled packages

The files in this folder are bundled and minified from the packages below. A text that several packages have is below
the first of them.
${sections.join("")}`;
}

/** @param titles the packages that texts are below, which this function extends */
function sectionOf(title: string, { license, texts }: VendoredPackage, titles: Map<string, string>): string {
  const parts = Object.values(texts).map((given) => {
    const text = given.trim();
    const first = getOrMake(titles, text, () => title);
    return first === title ? `\n\`\`\`\n${text}\n\`\`\`\n` : `\nThe text is that of ${first}.\n`;
  });
  return `\n## ${title} (${license})\n${parts.join("")}`;
}
