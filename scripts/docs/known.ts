/**
 * Remembers the API's pages that passed the suite's check, by their text, for all clones on the machine. A draft of the
 * site leaves them out: of 1,900 pages, a change of the sources usually changes a few.
 */
import { readFileSync, rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { ContentCache, contentKey, contentOf } from "../content_cache.ts";
import { filesOf } from "../format/files.ts";
import { type Page, pageOf } from "./html.ts";

/** A list of all pages with their links takes 5 MB. */
const MOST_BYTES = 50e6;

/** What a page may depend on besides its text: the tools, and their settings. */
const rules = (): string[] => [
  ...filesOf(["site/*", "site/.vitepress/**", "scripts/docs/*.ts"]),
  "bun.lock",
  "package.json",
];

/** The anchors and links of a page, as stored. */
interface Links {
  readonly ids: readonly string[];
  readonly links: readonly string[];
}

export class KnownPages {
  /** The pages that were left out, by the file that the site would have. */
  readonly leftOut = new Map<string, Page>();
  readonly #cache: ContentCache;
  readonly #rules: string;
  /** The keys of all pages of the API, by the file of the site. */
  readonly #keys = new Map<string, string>();

  /**
   * @param more whatever else changes pages, such as the repository's address
   * @param parent the folder of the cache
   */
  constructor(more: readonly string[], parent: string) {
    this.#cache = new ContentCache("pages", MOST_BYTES, parent);
    const contents = rules().flatMap((file) => [file, contentOf(join(packageRoot, file)) ?? "no file"]);
    this.#rules = contentKey([Bun.version, ...more, ...contents]);
  }

  /** Removes the known pages of the API from a folder of Markdown. */
  async leaveOut(pages: string): Promise<void> {
    const known = await this.#read();
    for (const file of new Bun.Glob("api/**/*.md").scanSync({ cwd: pages })) {
      const path = join(pages, file);
      const [html, key] = [file.replace(/\.md$/, ".html"), contentKey([file, readFileSync(path)])];
      this.#keys.set(html, key);
      const own = known[key];
      if (own === undefined) continue;
      this.leftOut.set(html, pageOf(html, own.ids, own.links));
      rmSync(path);
    }
  }

  /** Remembers all pages of the API, after they passed. @param built the pages of the site */
  async keep(built: ReadonlyMap<string, Page>): Promise<void> {
    if (this.#keys.size === 0) return;
    const all: Record<string, Links> = {};
    for (const [html, key] of this.#keys) {
      const page = built.get(html) ?? this.leftOut.get(html);
      if (page)
        all[key] = { ids: [...page.ids], links: [...page.links].filter((link) => !link.startsWith("/assets/")) };
    }
    await this.#inFile(async (file) => {
      await Bun.write(file, JSON.stringify(all));
      this.#cache.store(this.#rules, file);
      this.#cache.trim();
    });
  }

  #read(): Promise<Readonly<Record<string, Links>>> {
    return this.#inFile(async (file) =>
      this.#cache.restore(this.#rules, file) ? ((await Bun.file(file).json()) as Record<string, Links>) : {},
    );
  }

  async #inFile<Result>(body: (file: string) => Promise<Result>): Promise<Result> {
    const folder = await mkdtemp(join(tmpdir(), "orchard-site-"));
    try {
      return await body(join(folder, "pages.json"));
    } finally {
      await rm(folder, { recursive: true });
    }
  }
}
