/** The suite's check of the site: it builds, and every link leads to an existing target. A success is cached. */
import { join } from "node:path";
import { cacheFolder, packageRoot } from "../../src/core/paths.ts";
import { type Counts, noTests, onePassed } from "../counts.ts";
import { filesOf } from "../format/files.ts";
import { checkLinks, readPages } from "./html.ts";
import { KnownPages } from "./known.ts";
import { linkProblems } from "./links.ts";
import { pagePaths } from "./pages.ts";
import { buildSite, repositoryAddress, siteFolder } from "./site.ts";

export interface DocsOptions {
  /** Whether to build the site as readers get it, instead of a draft with the same pages and links. */
  readonly isFull?: boolean;
  /** Builds a site, and returns its folder. Tests replace it. @param known the pages that a draft leaves out */
  readonly build?: (known: KnownPages | undefined) => Promise<string>;
  /** The folder that records which contents passed; by default it is in the user's cache, for all clones. */
  readonly cache?: string;
}

/**
 * Builds the site and checks its links. If the same content passed before, in this clone or another, nothing is built.
 * A draft is built without the API's pages that passed before with the same text.
 *
 * @throws {Failure} if the site doesn't build, such as for a dead link that VitePress finds
 */
export async function checkDocs({
  isFull = false,
  build = buildHere,
  cache = join(cacheFolder(), "docs"),
}: DocsOptions = {}): Promise<Counts> {
  const inSources = linkProblems(); // other links may lead to files outside the site, so the result is not cached
  if (inSources.length > 0) return failed(inSources);
  const stamp = Bun.file(join(cache, `${await docsKey()}${isFull ? "-full" : ""}.json`));
  if (await stamp.exists()) {
    console.log("The site's content passed before");
    return onePassed;
  }
  const known = isFull ? undefined : new KnownPages([repositoryAddress() ?? ""], cache);
  const folder = await build(known);
  const built = await readPages(folder);
  const all = new Map([...(known?.leftOut ?? []), ...built]);
  const { pages, links, problems: ofLinks } = checkLinks({ folder, base: "/", pages: all });
  const problems = [...ofLinks, ...searchProblems(folder), ...(await contentProblems(folder))];
  if (problems.length > 0) return failed(problems);
  console.log(`${pages} pages, ${built.size} of them built, ${links} links: no problem`);
  await known?.keep(built);
  await stamp.write(JSON.stringify({ pages, links }));
  return onePassed;
}

/** The site loads the whole index for a reader's first search. In a draft, it lacks the pages that are left out. */
const MOST_SEARCH_BYTES = 1e6;

function searchProblems(folder: string): string[] {
  const files = [...new Bun.Glob("**/@localSearchIndex*.js").scanSync(folder)];
  const bytes = files.reduce((sum, file) => sum + Bun.file(join(folder, file)).size, 0);
  if (bytes <= MOST_SEARCH_BYTES) return [];
  return [`the search index has ${bytes} bytes, expected at most ${MOST_SEARCH_BYTES}: see site/.vitepress/search.ts`];
}

/** Reads the text of an element of a page, without tags. */
const plain = (html: string): string => html.replace(/<[^>]+>/g, "");

/**
 * Checks contents that readers need and that an update of a tool could remove: how to install, a favicon, and a
 * readable API.
 */
async function contentProblems(folder: string): Promise<string[]> {
  const read = (file: string) => Bun.file(join(folder, file)).text();
  const home = await read("index.html");
  const problems: string[] = [];
  if (!/class="tagline"[^>]*>[\s\S]*?bun add [\w-]+[\s\S]*?<\/p>/.test(home))
    problems.push("/: the banner does not say how to install the package: see home in scripts/docs/pages.ts");
  if (!/<link rel="icon" /.test(home)) problems.push("/: there is no favicon: see site/.vitepress/config.ts");
  for (const file of [...new Bun.Glob("api/**/*.html").scanSync({ cwd: folder })].sort()) {
    const page = await read(file);
    if (file === "api/index.html")
      for (const [, name] of page.matchAll(
        /<a href="[^"]*\/namespaces\/[^"]*"[^>]*>(\w+)<\/a><\/td><td[^>]*>\s*-?\s*<\/td>/g,
      ))
        problems.push(`api/: the namespace ${name} has no description: see site/typedoc_plugin.ts`);
    if (/"float16"\s*\|\s*"bfloat16"\s*\|\s*"int64"/.test(plain(page).replaceAll("&quot;", '"')) && !isOfDTypes(file))
      problems.push(`${file}: the dtypes are listed instead of the name of their type: see site/typedoc_plugin.ts`);
    if (/<h\d id="throws[^>]*>(?:(?!<\/h\d>)[\s\S])*<\/h\d>\s*<p>(?:if|for|where) /.test(page))
      problems.push(`${file}: it does not name the thrown error: see site/typedoc_plugin.ts`);
  }
  return problems;
}

/** Whether a page describes a type that lists dtypes. */
const isOfDTypes = (file: string): boolean => /\/type-aliases\/(?:\w*DType)\.html$/.test(file);

async function buildHere(known: KnownPages | undefined): Promise<string> {
  await buildSite("/", known);
  return siteFolder;
}

/** Reports one failure per problem. */
function failed(problems: readonly string[]): Counts {
  for (const problem of problems) console.log(problem);
  return { ...noTests, failed: problems.length, failures: problems };
}

/** The inputs of the site: its pages, the sources that TypeDoc reads with their settings, and the tools. */
export const docsSources = (): string[] => [
  ...pagePaths().keys(),
  ...filesOf([
    "docs/**/*.{svg,png}",
    "src/**/*.ts",
    "site/*",
    "site/.vitepress/**",
    "scripts/docs/*.ts",
    "scripts/format/files.ts",
  ]),
  "bun.lock",
  "package.json",
  "tsconfig.json",
];

/** Returns a hash of all inputs of the site. */
export async function docsKey(root: string = packageRoot): Promise<string> {
  const hash = new Bun.SHA256().update(JSON.stringify([Bun.version, repositoryAddress()]));
  for (const file of docsSources().sort()) {
    const content = await Bun.file(join(root, file)).bytes();
    hash.update(`${file}\0${content.length}\0`).update(content);
  }
  return hash.digest("hex");
}
