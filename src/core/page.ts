/** Bundles a page into one document with inline script and styles, so that it needs no further requests. */

export interface Document {
  readonly html: string;
  /** Hashes of the script and the styles for the Content-Security-Policy, which allows nothing else in the page. */
  readonly script: string;
  readonly styles: string;
}

/** Bundles the page of an HTML file. @throws {AggregateError} if its source does not compile */
export async function bundlePage(entry: string): Promise<Document> {
  const { outputs } = await Bun.build({ entrypoints: [entry], minify: true, target: "browser" });
  const textOf = async (extension: string) =>
    (await outputs.find(({ path }) => path.endsWith(extension))!.text()).trim();
  const [html, script, styles] = await Promise.all([textOf(".html"), textOf(".js"), textOf(".css")]);
  const code = script.replaceAll("</script", "<\\/script"); // would close the script element
  const inlined = html
    .replace(/<link rel="stylesheet"[^>]*>/, () => `<style>${styles}</style>`)
    .replace(/<script type="module"[^>]*><\/script>/, () => `<script type="module">${code}</script>`);
  return { html: inlined, script: hashOf(code), styles: hashOf(styles) };
}

const hashOf = (text: string): string => `'sha256-${new Bun.CryptoHasher("sha256").update(text).digest("base64")}'`;
