/** `GET /`: the page to talk to the model. */
import { join } from "node:path";
import { bundlePage, type Document } from "../core/page.ts";
import { sourceFolder } from "../core/place.ts";

/** It is bundled when it is asked for first: most servers have no reader. */
let bundled: Promise<Document> | undefined;

/** The page may ask this server alone: nothing else runs in it or is loaded, and no other page may frame it. */
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
