/** Checks the links of the built site: each must lead to a page or file of the site, and to an existing anchor. */
import { join } from "node:path";
import { fileOf, namesOf } from "./serve.ts";

export interface Page {
  /** The page's path below the site's base, as in links: `api/`, `start`. */
  readonly path: string;
  readonly ids: ReadonlySet<string>;
  /** The targets of the page's links and resources, as written. */
  readonly links: ReadonlySet<string>;
}

/** The links of a built site. */
export interface SiteLinks {
  readonly pages: number;
  /** Links within the site; repeated ones on a page count once. */
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
export const checkSiteLinks = async (folder: string, base = "/"): Promise<SiteLinks> =>
  checkLinks({ folder, base, pages: await readPages(folder) });

/** Checks the links of these pages, which need not be in the folder of the site. */
export function checkLinks(site: Site): SiteLinks {
  const found = [...site.pages.values()].flatMap((page) =>
    [...page.links].map((link) => ({ page, link, problem: problemOf(site, page, link) })),
  );
  const within = found.filter(({ problem }) => problem !== "elsewhere");
  return {
    pages: site.pages.size,
    links: within.length,
    problems: within.flatMap(({ page, link, problem }) =>
      problem ? [`${page.path || "/"}: ${link}: ${problem}`] : [],
    ),
  };
}

/** Reads the built pages, by their files. */
export async function readPages(folder: string): Promise<Map<string, Page>> {
  const files = [...new Bun.Glob("**/*.html").scanSync({ cwd: folder })].sort();
  const pages = new Map<string, Page>();
  for (const file of files) pages.set(file, await readPage(folder, file));
  return pages;
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
  return pageOf(file, ids, links);
}

export const pageOf = (file: string, ids: Iterable<string>, links: Iterable<string>): Page => ({
  path: file.replace(/(?:(^|\/)index)?\.html$/, "$1"),
  ids: new Set(ids),
  links: new Set(links),
});

/** Decodes the entities that VitePress writes in attributes. */
const decoded = (text: string): string =>
  text.replace(/&(lt|gt|quot|#39|#x27);/g, (entity) => entities[entity]).replaceAll("&amp;", "&");

const entities: Readonly<Record<string, string>> = {
  "&lt;": "<",
  "&gt;": ">",
  "&quot;": '"',
  "&#39;": "'",
  "&#x27;": "'",
};

export interface Site {
  readonly folder: string;
  readonly base: string;
  /** The pages by file. */
  readonly pages: ReadonlyMap<string, Page>;
}

/** Returns the problem with a link; "elsewhere" for a link to another site. */
function problemOf({ folder, base, pages }: Site, page: Page, link: string): string | undefined {
  const origin = "http://site";
  const url = URL.parse(link, `${origin}${base}${page.path}`);
  if (!url) return "is not a valid address";
  if (url.origin !== origin) return "elsewhere";
  if (!url.pathname.startsWith(base)) return `is outside ${base}`;
  const path = decodeURIComponent(url.pathname.slice(base.length));
  const name = namesOf(path).find((own) => pages.has(own));
  if (name === undefined && !fileOf(folder, path)) return "leads to no page or file";
  const anchor = decodeURIComponent(url.hash.slice(1));
  const target = name === undefined ? undefined : pages.get(name);
  return anchor === "" || !target || target.ids.has(anchor) ? undefined : `the page has no anchor "${anchor}"`;
}
