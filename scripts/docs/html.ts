/** Links of the built site: each leads to a page or a file of it, and to an anchor that the page has. */
import { join } from "node:path";
import { fileOf } from "./serve.ts";

interface Page {
  /** Its path below the site's base, as links name it: `api/`, `start`. */
  readonly path: string;
  readonly ids: ReadonlySet<string>;
  /** What it links to or loads, as written. */
  readonly links: ReadonlySet<string>;
}

/** The links of a built site. */
export interface SiteLinks {
  readonly pages: number;
  /** Links within the site; one that a page repeats counts once. */
  readonly links: number;
  /** `page: link: what is wrong`. */
  readonly problems: readonly string[];
}

/**
 * Checks every link within a site, pictures and scripts included. Links to other sites are not followed.
 *
 * @param folder has the built pages
 * @param base the path where the site will be
 */
export async function checkSiteLinks(folder: string, base = "/"): Promise<SiteLinks> {
  const files = [...new Bun.Glob("**/*.html").scanSync({ cwd: folder })].sort();
  const pages = new Map<string, Page>();
  for (const file of files) pages.set(file, await readPage(folder, file));
  const site = { folder, base, pages };
  const found = [...pages.values()].flatMap((page) =>
    [...page.links].map((link) => ({ page, link, problem: problemOf(site, page, link) })),
  );
  const within = found.filter(({ problem }) => problem !== "elsewhere");
  return {
    pages: files.length,
    links: within.length,
    problems: within.flatMap(({ page, link, problem }) =>
      problem ? [`${page.path || "/"}: ${link}: ${problem}`] : [],
    ),
  };
}

async function readPage(folder: string, file: string): Promise<Page> {
  const [ids, links] = [new Set<string>(), new Set<string>()];
  const text = await Bun.file(join(folder, file)).text();
  const adds = (name: string, values: Set<string>) => ({
    element(element: HTMLRewriterTypes.Element) {
      const value = element.getAttribute(name);
      if (value !== null) values.add(decoded(value));
    },
  });
  new HTMLRewriter()
    .on("[id]", adds("id", ids))
    .on("[href]", adds("href", links))
    .on("[src]", adds("src", links))
    .transform(text);
  return { path: file.replace(/(?:(^|\/)index)?\.html$/, "$1"), ids, links };
}

/** An attribute's value without the entities that VitePress writes there. */
const decoded = (text: string): string =>
  text.replace(/&(lt|gt|quot|#39|#x27);/g, (entity) => entities[entity]!).replaceAll("&amp;", "&");

const entities: Readonly<Record<string, string>> = {
  "&lt;": "<",
  "&gt;": ">",
  "&quot;": '"',
  "&#39;": "'",
  "&#x27;": "'",
};

interface Site {
  readonly folder: string;
  readonly base: string;
  /** By their files. */
  readonly pages: ReadonlyMap<string, Page>;
}

/** What is wrong with a link; "elsewhere" for one that leaves the site. */
function problemOf({ folder, base, pages }: Site, page: Page, link: string): string | undefined {
  const origin = "http://site";
  const url = URL.parse(link, `${origin}${base}${page.path}`);
  if (!url) return "is no address";
  if (url.origin !== origin) return "elsewhere";
  if (!url.pathname.startsWith(base)) return `is outside ${base}`;
  const path = decodeURIComponent(url.pathname.slice(base.length));
  const file = fileOf(folder, path);
  if (!file) return "leads to no page or file";
  const anchor = decodeURIComponent(url.hash.slice(1));
  const target = pages.get(file.slice(join(folder, "/").length));
  return anchor === "" || !target || target.ids.has(anchor) ? undefined : `the page has no anchor "${anchor}"`;
}
