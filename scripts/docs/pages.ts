/** Creates the site's pages from the repository's documents, and adapts the links between them. */
import { cp, mkdir, rm } from "node:fs/promises";
import { dirname, join, normalize, posix } from "node:path";
import packageFile from "../../package.json";
import { packageRoot } from "../../src/core/paths.ts";
import { filesOf } from "../format/files.ts";
import { withLinks } from "./links.ts";

/** The documents, each with the path of its page. */
export function pagePaths(): Map<string, string> {
  const docs = filesOf(["docs/**/*.md"]).map((file) => [file, file.replace(/^docs\//, "")] as const);
  const others = ["CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"].map((file) => [file, file.toLowerCase()] as const);
  return new Map([["README.md", "index.md"], ...others, ...docs]);
}

/**
 * Writes all pages and their pictures.
 *
 * @param folder is recreated
 * @param repository its web address, for links to files that are not pages; without it they become plain text
 */
export async function writePages(folder: string, repository: string | undefined): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  for (const file of filesOf(["docs/**/*.{svg,png}"])) {
    const path = join(folder, file.replace(/^docs\//, ""));
    await mkdir(dirname(path), { recursive: true });
    await cp(join(packageRoot, file), path);
  }
  const pages = pagePaths();
  for (const [file, page] of pages) {
    const text = withSiteLinks(file, await Bun.file(join(packageRoot, file)).text(), pages, repository);
    await Bun.write(join(folder, page), page === "index.md" ? home(text) : text);
  }
}

/** Returns the text of a document with its links adapted to the site. */
export function withSiteLinks(
  file: string,
  text: string,
  pages: ReadonlyMap<string, string>,
  repository: string | undefined,
): string {
  const page = pages.get(file)!;
  return withLinks(text, (path) => siteLink(page, normalize(join(dirname(file), path)), pages, repository));
}

function siteLink(page: string, linked: string, pages: ReadonlyMap<string, string>, repository: string | undefined) {
  const picture = /^docs\/(.*\.(?:svg|png))$/.exec(linked)?.[1];
  const to = pages.get(linked) ?? picture;
  if (!to) return repository && `${repository}/blob/main/${linked}`;
  const relative = posix.relative(dirname(page), to);
  return relative.startsWith(".") ? relative : `./${relative}`;
}

/**
 * The README as the first page. The banner has its title, its first paragraph and the command that installs the
 * package.
 */
function home(text: string): string {
  const [, title, tagline, rest] = /^# (.*)\n\n([\s\S]*?)\n\n([\s\S]*)$/.exec(text)!;
  const plain = tagline.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").replace(/\n/g, " ");
  const hero = {
    name: title,
    text: "Tensors and Metal kernels for Bun",
    tagline: `${Bun.escapeHTML(plain)}<code class="install">bun add ${packageFile.name}</code>`,
    actions: [
      { theme: "brand", text: "Start", link: "/start" },
      { theme: "alt", text: "From PyTorch", link: "/from-pytorch" },
      { theme: "alt", text: "From MLX", link: "/from-mlx" },
    ],
  };
  return `---\n${JSON.stringify({ layout: "home", hero })}\n---\n\n${rest}`;
}
