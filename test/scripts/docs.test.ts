/** The output of `bun run docs` for the documents, without the tools that build the site. */
import { beforeEach, describe, expect, test } from "bun:test";
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import packageFile from "../../package.json";
import { linkProblems, linksOf } from "../../scripts/docs/links.ts";
import { pagePaths, withSiteLinks, writePages } from "../../scripts/docs/pages.ts";
import { serveFolder } from "../../scripts/docs/serve.ts";
import { terminalPicture } from "../../scripts/docs/terminal.ts";
import { linkDocuments } from "../../scripts/release/stage.ts";
import { packageRoot } from "../../src/core/paths.ts";
import * as library from "../../src/index.ts";
import { testFolder } from "../support/folder.ts";

const { path: folder } = testFolder("docs");

test("a terminal picture has words at their positions, curves as dots, and partial bars", () => {
  const svg = terminalPicture("█░ 1\r██ 2 \u001b[1m<of> 2\u001b[0m\n  ⠁⢀ a  b\n", "A run");
  expect(svg).toContain("<title>A run</title>");
  expect(svg).toContain('<rect x="20" y="22.5" width="16" height="13"');
  expect(svg).toMatch(/<text x="44" [^>]*>2 &lt;of&gt; 2<\/text>/);
  expect(svg).toMatch(/<text x="60" [^>]*>a<\/text>\n<text x="84" [^>]*>b<\/text>/);
  expect(svg.match(/M[\d.]+ [\d.]+h0/g)).toEqual(["M38 40.25h0", "M50 53.75h0"]);
});

describe("links of a page", () => {
  const pages = new Map([
    ["README.md", "index.md"],
    ["docs/nn.md", "nn.md"],
    ["docs/decisions/0001.md", "decisions/0001.md"],
  ]);
  const text = (file: string, given: string, repository?: string) => withSiteLinks(file, given, pages, repository);

  test.each([
    ["README.md", "[a](docs/nn.md#layers)", "[a](./nn.md#layers)"],
    ["README.md", "![a](docs/pictures/a.svg)", "![a](./pictures/a.svg)"],
    ["docs/nn.md", "[a](../README.md) [b](decisions/0001.md)", "[a](./index.md) [b](./decisions/0001.md)"],
    ["docs/decisions/0001.md", "[a](../nn.md)", "[a](../nn.md)"],
    ["docs/nn.md", "[a](#layers) [b](https://x.y/z.md)", "[a](#layers) [b](https://x.y/z.md)"],
    ["docs/nn.md", "`[a](../README.md)`", "`[a](../README.md)`"],
  ])("a link in %s is translated: %s", (file, given, expected) => {
    expect(text(file, given)).toBe(expected);
  });

  test("links to files that are not pages lead to the repository, and are plain text without one", () => {
    const given = "see [`a.ts`](../src/a.ts), [b](nn.md) and [c](../src)";
    expect(text("docs/nn.md", given, "https://x.y/z")).toBe(
      "see [`a.ts`](https://x.y/z/blob/main/src/a.ts), [b](./nn.md) and [c](https://x.y/z/blob/main/src)",
    );
    expect(text("docs/nn.md", given)).toBe("see `a.ts`, [b](./nn.md) and c");
  });
});

test("every document is a page, and every link between pages leads to one", async () => {
  await writePages(folder, undefined);
  for (const page of pagePaths().values()) expect([page, existsSync(join(folder, page))]).toEqual([page, true]);
  expect(
    linkProblems(
      [...pagePaths().values()].filter((page) => page !== "index.md"),
      folder,
    ),
  ).toEqual([]);
  const index = readFileSync(join(folder, "index.md"), "utf8");
  expect(index).toStartWith('---\n{"layout":"home","hero":{"name":"Orchard"');
  expect(index.split("\n")[1]).toContain("bun add orchard-metal</code>");
  expect(index).toContain("](./pictures/spirals.svg)");
});

describe("documents of the package", () => {
  const packed = join(folder, "packed");
  const documents = () => [...new Bun.Glob("**/*.md").scanSync({ cwd: packed })];
  const read = (file: string) => readFileSync(join(packed, file), "utf8");

  beforeEach(() => {
    for (const path of ["docs", "README.md", "CHANGELOG.md", "LICENSE"])
      cpSync(join(packageRoot, path), join(packed, path), { recursive: true });
  });

  test("documents link only to packed files while the repository's address is not known", async () => {
    expect(linkProblems(documents(), packed).length).toBeGreaterThan(50);
    await linkDocuments(packed, undefined);
    expect(linkProblems(documents(), packed)).toEqual([]);
    expect(documents().filter((file) => /\]\((?:\.\.\/)*(?:src|test|CONTRIBUTING)/.test(read(file)))).toEqual([]);
    expect(read("README.md")).toContain("| [A first program](docs/start.md) | Contributing |");
  });

  test("documents link to the repository at the version's tag for everything else", async () => {
    const start = `https://x.y/z/blob/v${packageFile.version}/`;
    await linkDocuments(packed, "https://x.y/z");
    expect(linkProblems(documents(), packed)).toEqual([]);
    expect(read("README.md")).toContain(
      `| [A first program](docs/start.md) | [Contributing](${start}CONTRIBUTING.md) |`,
    );
    const elsewhere = documents().flatMap((file) =>
      linksOf(read(file)).flatMap(({ target }) => (target.startsWith(start) ? [target.slice(start.length)] : [])),
    );
    expect(elsewhere.length).toBeGreaterThan(50);
    expect(elsewhere.filter((path) => !existsSync(join(packageRoot, path.split("#")[0])))).toEqual([]);
  });
});

test("every page of the guide is in the site's table of contents", () => {
  const config = readFileSync(join(packageRoot, "site", ".vitepress", "config.ts"), "utf8");
  const pages = [...pagePaths().values()].filter((page) => page !== "index.md" && !page.startsWith("decisions/"));
  expect(pages.filter((page) => !config.includes(`link: "/${page.replace(/\.md$/, "")}"`))).toEqual([]);
});

test("every namespace of the package is in the API's table of contents", () => {
  const config = readFileSync(join(packageRoot, "site", ".vitepress", "config.ts"), "utf8");
  const [, listed] = /\[\s*("data"[^\]]*?),?\s*\]\.map/.exec(config)!;
  const namespaces = Object.entries(library).filter(
    ([, value]) => Object.prototype.toString.call(value) === "[object Module]",
  );
  expect(listed.split(/,\s*/).map((name) => name.slice(1, -1))).toEqual(namespaces.map(([name]) => name).sort());
});

test("the site's tools are pinned, and their lock file names no host", () => {
  const { dependencies } = JSON.parse(readFileSync(join(packageRoot, "site", "package.json"), "utf8")) as {
    dependencies: Record<string, string>;
  };
  expect(Object.values(dependencies).filter((version) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual([]);
  expect(readFileSync(join(packageRoot, "site", "bun.lock"), "utf8")).not.toMatch(/https?:\/\//);
});

test("the server serves pages without their extension, only below its base and inside its folder", async () => {
  const root = join(folder, "served");
  mkdirSync(join(root, "api"), { recursive: true });
  writeFileSync(join(root, "page.html"), "a page");
  writeFileSync(join(root, "api", "index.html"), "the api");
  const server = serveFolder(root, "/base/");
  const get = async (path: string) => {
    const response = await fetch(new URL(path, server.url));
    return response.ok ? response.text() : response.status;
  };
  try {
    expect(await get("/base/page")).toBe("a page");
    expect(await get("/base/api/")).toBe("the api");
    expect([await get("/page"), await get("/base/other"), await get("/base/..%2findex.md")]).toEqual([404, 404, 404]);
  } finally {
    await server.stop(true);
  }
});
