/** `bun run docs`: the documentation as a site, in build/docs. */
import { join } from "node:path";
import { runOrFail } from "../../src/cli/run.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { installDependencies } from "../dependencies.ts";
import { Failure } from "../failure.ts";
import { linkProblems } from "./links.ts";
import { writePages } from "./pages.ts";
import { serveFolder } from "./serve.ts";

const site = join(packageRoot, "site");
const pages = join(site, "build", "pages");

/** The folder of the built site. */
export const siteFolder = join(packageRoot, "build", "docs");

/**
 * Builds the site. `--check` opens its pages in a browser, `--serve` shows them, `--base /path/` sets their base path.
 * @throws {Failure} for broken links, or if a tool fails
 */
export async function buildDocs(words: readonly string[]): Promise<void> {
  const options = readWords(words);
  const problems = linkProblems();
  if (problems.length > 0) throw new Failure(`Broken links in documents:\n${problems.join("\n")}`);
  await buildSite(options.base);
  console.log(`The site is in ${siteFolder}`);
  if (options.check) await (await import("./browse.ts")).checkPages(siteFolder, options.base, options.pictures);
  if (options.serve) await serveUntilInterrupted(options.base);
}

/** How the suite builds the site. */
export interface Draft {
  /** Is called with the folder of pages in Markdown, and may remove some of the API. */
  readonly leaveOut: (pages: string) => Promise<void>;
}

/**
 * Builds the site into `build/docs`.
 *
 * @param base the path at which it will be served
 * @param draft omits parts that only readers need, such as colors in code: see site/.vitepress/config.ts
 * @throws {Failure} if a tool fails, such as VitePress for a dead link
 */
export async function buildSite(base = "/", draft?: Draft): Promise<void> {
  await installDependencies(site);
  await writePages(pages, repositoryAddress());
  const options = join(site, "build", "typedoc.json");
  await Bun.write(options, JSON.stringify(apiOptions));
  const typedoc = [process.execPath, program("typedoc", "bin/typedoc"), "--options", options];
  await runOrFail("Documenting the API", typedoc, { cwd: site });
  await draft?.leaveOut(pages);
  await runOrFail("Building the site", [process.execPath, program("vitepress", "bin/vitepress.js"), "build"], {
    cwd: site,
    environment: { DOCS_BASE: base, DOCS_DRAFT: draft ? "1" : "" },
  });
}

const program = (name: string, path: string): string => join(site, "node_modules", name, path);

/** Returns the address of the repository in continuous integration. */
export const repositoryAddress = (): string | undefined =>
  process.env["GITHUB_REPOSITORY"] && `${process.env["GITHUB_SERVER_URL"]}/${process.env["GITHUB_REPOSITORY"]}`;

interface Options {
  base: string;
  check: boolean;
  serve: boolean;
  /** The folder for screenshots of the checked pages. */
  pictures: string | undefined;
}

function readWords(words: readonly string[]): Options {
  const options: Options = { base: "/", check: false, serve: false, pictures: undefined };
  for (let at = 0; at < words.length; at++) {
    const word = words[at];
    if (word === "--check") options.check = true;
    else if (word === "--serve") options.serve = true;
    else if (word === "--base") options.base = words[++at] ?? "";
    else if (word === "--pictures") options.pictures = words[++at];
    else
      throw new Failure(`Unknown option ${word}; the options are: --check, --serve, --base /path/, --pictures folder`);
  }
  if (!/^\/(?:.*\/)?$/.test(options.base))
    throw new Failure(`expected --base to begin and end with "/", got "${options.base}"`);
  return options;
}

/** TypeDoc's options: one page per function, class or type of the package. */
const apiOptions = {
  entryPoints: [join(packageRoot, "src", "index.ts")],
  tsconfig: join(packageRoot, "tsconfig.json"),
  plugin: ["typedoc-plugin-markdown", join(site, "typedoc_plugin.ts")],
  router: "page",
  theme: "named",
  out: join(pages, "api"),
  name: "orchard-metal",
  entryFileName: "index",
  pageTitleTemplates: { index: "API", member: "{name}", module: "{name}" },
  readme: "none",
  logLevel: "Error",
  excludeInternal: true,
  disableSources: true,
  skipErrorChecking: true,
  hidePageHeader: true,
  useCodeBlocks: true,
  sanitizeComments: true,
  preservedTypeAnnotationTags: ["@throws"],
  useHTMLEncodedBrackets: true,
  expandParameters: true,
  parametersFormat: "table",
  indexFormat: "table",
  groupOrder: ["Namespaces", "Functions", "Variables", "Classes", "*"],
};

async function serveUntilInterrupted(base: string): Promise<void> {
  const server = serveFolder(siteFolder, base);
  console.log(`${server.url} (Ctrl-C ends it)`);
  await new Promise<void>((resolve) => process.once("SIGINT", resolve));
  await server.stop(true);
}
