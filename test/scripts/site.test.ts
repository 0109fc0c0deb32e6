/** The site's check: links of built pages, and its cache. */
import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { checkDocs, docsKey, docsSources } from "../../scripts/docs/check.ts";
import { checkSiteLinks } from "../../scripts/docs/html.ts";
import { Failure } from "../../scripts/failure.ts";
import { packageRoot } from "../../src/core/paths.ts";

const root = mkdtempSync(join(tmpdir(), "orchard-site-"));
afterAll(() => rmSync(root, { recursive: true }));

/** Writes files into a new separate folder. */
function folderOf(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(root, "folder-"));
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), text);
  }
  return folder;
}

/** A site of three pages and a picture, with additional text on its second page. */
const siteOf = (more = "") =>
  folderOf({
    "index.html": '<h1 id="top">a</h1><a href="/base/guide">b</a> <a href="/base/api/#t&amp;f">c</a>',
    "guide.html": `<a href="#here">a</a> <p id="here"></p> <img src="picture.svg"> <a href="https://x.y">b</a> ${more}`,
    "api/index.html": '<h2 id="t&amp;f">a</h2> <a href="../guide.html#here">b</a> <a href="/base/">c</a>',
    "picture.svg": "<svg/>",
  });

describe("links of built pages", () => {
  test("links lead to pages with and without their extension, to files and to anchors", async () => {
    expect(await checkSiteLinks(siteOf(), "/base/")).toEqual({ pages: 3, links: 6, problems: [] });
  });

  test.each([
    ['<a href="/base/gide">', "guide: /base/gide: leads to no page or file"],
    ['<a href="./api/Index">', "guide: ./api/Index: leads to no page or file"],
    ['<a href="api/#top">', 'guide: api/#top: the page has no anchor "top"'],
    ['<a href="#there">', 'guide: #there: the page has no anchor "there"'],
    ['<img src="/base/other.svg">', "guide: /base/other.svg: leads to no page or file"],
    ['<script src="/guide.js"></script>', "guide: /guide.js: is outside /base/"],
    ['<a href="http://[">', "guide: http://[: is not a valid address"],
  ])("broken links are reported: %s", async (link, problem) => {
    const { links, problems } = await checkSiteLinks(siteOf(link), "/base/");
    expect(problems).toEqual([problem]);
    expect(links).toBe(7);
  });
});

/** A row of the API's list of namespaces. */
const namespaces = (description: string) =>
  `<tr><td style=""><a href="./orchard-metal/namespaces/nn/">nn</a></td><td>${description}</td></tr>`;

/** The first dtypes, highlighted as on a page. */
const dtypeList = '<span>|</span> "float16"\n  <b>|</b> <i>&quot;bfloat16&quot;</i> | "int64"';

const throwing = (words: string) =>
  `<h2 id="throws" tabindex="-1">Throws <a href="#throws"></a></h2><p>${words} it is</p>`;

describe("the check of pages builds once", () => {
  /** Required text of the first page. */
  const banner = '<link rel="icon" href="/favicon.svg"><p class="tagline">a <code>bun add orchard-metal</code></p>';

  /** Checks a site of one page with its cache in a folder, and returns how often the site was built. */
  async function check(cache: string, page: string | Failure, more: Readonly<Record<string, string>> = {}) {
    let builds = 0;
    const counts = await checkDocs({
      cache,
      build: async () => {
        builds++;
        if (page instanceof Failure) throw page;
        return folderOf({ "favicon.svg": "<svg/>", "index.html": banner + page, ...more });
      },
    });
    return { builds, failures: counts.failures, passed: counts.passed };
  }

  test("the check builds once for contents that pass, and then uses the result, in any clone", async () => {
    const cache = join(root, "passes");
    expect(await check(cache, '<a href="/">')).toEqual({ builds: 1, failures: [], passed: 1 });
    expect(readdirSync(cache)).toEqual([`${await docsKey()}.json`]);
    expect(await check(cache, '<a href="/">')).toEqual({ builds: 0, failures: [], passed: 1 });
  });

  test("the check fails for a dead link every time", async () => {
    const cache = join(root, "dead");
    const expected = { builds: 1, failures: ["/: /nothing: leads to no page or file"], passed: 0 };
    expect(await check(cache, '<a href="/nothing">')).toEqual(expected);
    expect(await check(cache, '<a href="/nothing">')).toEqual(expected);
    expect(existsSync(cache)).toBe(false);
  });

  test.each([
    [1_000_000, []],
    [1_000_001, [expect.stringContaining("the search index has 1000001 bytes, expected at most 1000000")]],
  ])("the check fails for a search index of more than 1 MB: %d bytes", async (bytes, failures) => {
    const index = { "assets/chunks/@localSearchIndexroot.abc.js": "a".repeat(bytes) };
    expect((await check(join(root, `search-${bytes}`), '<a href="/">', index)).failures).toEqual(failures);
  });

  test.each([
    ["index.html", "<p>bun add orchard-metal</p>", ["/: the banner does not say", "/: there is no favicon"]],
    ["index.html", banner.replace("orchard-metal", ""), ["/: the banner does not say"]],
    ["api/index.html", namespaces("-"), ["api/: the namespace nn has no description"]],
    ["api/index.html", namespaces("Layers"), []],
    ["api/functions/add.html", dtypeList, ["api/functions/add.html: the dtypes are listed"]],
    ["api/type-aliases/DType.html", dtypeList, []],
    ["api/functions/add.html", throwing("if"), ["api/functions/add.html: it does not name the thrown error"]],
    ["api/functions/add.html", throwing("<code>ShapeError</code> if"), []],
  ])("the check fails for missing content in %s: %s", async (file, text, problems) => {
    const page = { "api/orchard-metal/namespaces/nn/index.html": "", [file]: text };
    const { failures } = await check(join(root, `content-${Bun.hash(file + text)}`), "", page);
    expect(failures).toEqual(problems.map((problem) => expect.stringContaining(problem)));
  });

  test("the check throws errors of the build, and caches nothing", async () => {
    const cache = join(root, "throws");
    await expect(check(cache, new Failure("1 dead link(s) found"))).rejects.toThrow("1 dead link(s) found");
    expect(existsSync(cache)).toBe(false);
  });

  test("of the API, only pages with other texts are built, and links of all pages are checked", async () => {
    const cache = join(root, "known");
    const script = '<script src="/assets/theme.js"></script>';
    const pages = {
      "api/one.md": `<i id="first"></i><a href="./two">a</a>${script}`,
      "api/two.md": `<a href="./one#first">a</a>${script}`,
    };
    /** Returns the pages of the API that are built, and the failures. */
    async function checkApi(texts: Readonly<Record<string, string>>) {
      let built: string[] = [];
      rmSync(join(cache, `${await docsKey()}.json`), { force: true }); // as after a change of a source
      const { failures } = await checkDocs({
        cache,
        build: async (known) => {
          const markdown = folderOf({ ...texts, "guide.md": "" });
          await known!.leaveOut(markdown);
          built = [...new Bun.Glob("api/*.md").scanSync(markdown)].sort();
          const html = built.map((file) => [file.replace(".md", ".html"), texts[file]] as const);
          const assets = built.length > 0 ? { "assets/theme.js": "" } : {};
          return folderOf({ "favicon.svg": "", "index.html": banner, ...Object.fromEntries(html), ...assets });
        },
      });
      return [built, failures];
    }
    const all = Object.keys(pages);
    expect(await checkApi(pages)).toEqual([all, []]);
    expect(await checkApi(pages)).toEqual([[], []]);
    const moved = { ...pages, "api/one.md": pages["api/one.md"].replace("first", "second") };
    const failures = ['api/two: ./one#first: the page has no anchor "first"'];
    expect(await checkApi(moved)).toEqual([["api/one.md"], failures]);
    expect(await checkApi(moved)).toEqual([["api/one.md"], failures]); // nothing is remembered of a failed check
    expect(await checkApi({ "api/one.md": pages["api/one.md"] })).toEqual([
      [],
      ["api/one: ./two: leads to no page or file"],
    ]);
    expect(await checkApi(pages)).toEqual([[], []]);
  });

  test("the check depends on every page, source and tool, not on the clone's path", async () => {
    const sources = docsSources();
    const site = ["site/.vitepress/config.ts", "site/bun.lock", "site/typedoc_plugin.ts"];
    const pages = ["README.md", "CHANGELOG.md", "docs/start.md", "docs/pictures/demo.svg"];
    expect(sources).toEqual(expect.arrayContaining([...site, ...pages, "src/index.ts", "scripts/docs/pages.ts"]));
    const clone = join(root, "clone");
    for (const file of sources) await Bun.write(join(clone, file), Bun.file(join(packageRoot, file)));
    expect(await docsKey(clone)).toBe(await docsKey());
    await Bun.write(join(clone, "docs", "start.md"), "[a](nothing.md)\n");
    expect(await docsKey(clone)).not.toBe(await docsKey());
  });
});
