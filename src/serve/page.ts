/** `GET /`: the page to chat with the model. */
import { join } from "node:path";
import { bundlePage, type Document } from "../core/page.ts";
import { sourceFolder } from "../core/place.ts";

/** Bundled at the first request, since most servers never need it. */
let bundled: Promise<Document> | undefined;

/** Serves the page. It may only connect to this server, loads and runs nothing else, and can't be framed. */
export async function page(): Promise<Response> {
  bundled ??= bundlePage(join(sourceFolder, "serve", "page", "page.html"));
  const { html, script, styles } = await bundled;
  const policy = [
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; img-src data:",
    `script-src ${script}; style-src ${styles}; connect-src 'self'`,
  ].join("; ");
  return new Response(html, {
    headers: {
      "Content-Type": "text/html; charset=utf-8",
      "Content-Security-Policy": policy,
      "Cache-Control": "no-store",
      "Cross-Origin-Resource-Policy": "same-origin",
      "Referrer-Policy": "no-referrer",
      "X-Content-Type-Options": "nosniff",
    },
  });
}
