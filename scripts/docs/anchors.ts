/**
 * Returns GitHub's anchor of a heading: lower case, without punctuation, with hyphens for spaces. The site uses the
 * same.
 */
export const anchorOf = (title: string): string =>
  title
    .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M}_\- ]/gu, "")
    .trim()
    .replaceAll(" ", "-");
