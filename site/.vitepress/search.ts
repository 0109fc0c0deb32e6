/** The index of the site's search: headings, and the subject of each page of the API. */
import type { MarkdownEnv, MarkdownRenderer } from "vitepress";

/**
 * A page as the search index takes it: all headings of a guide; of a page of the API its name and its first paragraph,
 * since "Parameters" and "Returns" are on every one of them. With all text the index is 8 MB, which a reader's first
 * search would load.
 */
export function searchable(source: string, env: MarkdownEnv, markdown: MarkdownRenderer): string {
  const isApi = env.relativePath.startsWith("api/");
  const tokens = markdown.parse(source, env);
  const kept: typeof tokens = [];
  let headings = 0;
  let paragraphs = 0;
  for (const [at, { type }] of tokens.entries()) {
    const isHeading = type === "heading_open" && !(isApi && headings > 0);
    const isParagraph = type === "paragraph_open" && isApi && headings === 1 && paragraphs === 0;
    if (!isHeading && !isParagraph) continue;
    if (isHeading) headings++;
    else paragraphs++;
    kept.push(...tokens.slice(at, at + 3)); // the token that opens it, its text, and the token that closes it
  }
  return markdown.renderer.render(kept, markdown.options, env);
}
