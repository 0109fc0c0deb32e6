/** Links in the documents. */
import { describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { anchorOf } from "../../scripts/docs/anchors.ts";
import { documents, linkProblems, linksOf } from "../../scripts/docs/links.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { testFolder } from "../support/folder.ts";

describe("links in documents lead somewhere", () => {
  test("documents link to existing files and headings", () => {
    expect(documents()).toContain("docs/nn.md");
    expect(linkProblems()).toEqual([]);
  });

  test("documents lead to every page of docs", () => {
    const linked = documents().flatMap((file) =>
      linksOf(readFileSync(join(packageRoot, file), "utf8")).map(({ target }) => basename(target.split("#")[0])),
    );
    const pages = documents().filter((file) => file.startsWith("docs/") && !file.startsWith("docs/decisions/"));
    expect(pages.filter((page) => !linked.includes(basename(page)))).toEqual([]);
  });

  test("the gallery leads to every example", () => {
    const gallery = readFileSync(join(packageRoot, "docs", "gallery.md"), "utf8");
    const helpers = ["digits.ts", "file_kind_model.ts", "packages.ts", "picture.ts"];
    const examples = [...new Bun.Glob("*.ts").scanSync({ cwd: join(packageRoot, "examples") })];
    const missing = examples.filter((name) => !helpers.includes(name) && !gallery.includes(`(../examples/${name})`));
    expect(missing).toEqual([]);
  });
});

describe("a broken link is reported", () => {
  const { path: root } = testFolder("links");
  const problems = (text: string) => {
    writeFileSync(join(root, "page.md"), `# Page one\n\n${text}\n`);
    return linkProblems(["page.md"], root);
  };

  test.each([
    ["[a](nothing.md)", ["page.md:3: nothing.md is not there"]],
    ["![a](nothing.svg)", ["page.md:3: nothing.svg is not there"]],
    ["[![a](nothing.svg)](page.md)", ["page.md:3: nothing.svg is not there"]],
    ["[a](../page.md)", ["page.md:3: ../page.md is not there"]],
    ["[a](page.md#page-two)", ['page.md:3: page.md has no heading "page-two"']],
    ["[a][b]\n\n[b]: nothing.md", ["page.md:5: nothing.md is not there"]],
    ["```md\n[a](nothing.md)\n```\n\n`[a](nothing.md)` [a](#page-one) [a](page.md#page-one) [a](https://x.y)", []],
  ])("the broken link %j is reported", (text, expected) => {
    expect(problems(text)).toEqual(expected);
  });
});

test("anchors match the repository's page", () => {
  expect(anchorOf("`nn.GPT` and Llama: what's in it?")).toBe("nngpt-and-llama-whats-in-it");
  expect(anchorOf("What a kernel may *reach*")).toBe("what-a-kernel-may-reach");
});
