/** Serves files on the loopback address under the site's addresses: without `.html`. */
import { existsSync, statSync } from "node:fs";
import { join, normalize } from "node:path";

export function serveFolder(folder: string, base: string) {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch({ url }) {
      const path = decodeURIComponent(new URL(url).pathname);
      const file = path.startsWith(base) ? fileOf(folder, path.slice(base.length)) : undefined;
      return file ? new Response(Bun.file(file)) : new Response("not found", { status: 404 });
    },
  });
  return { url: `http://127.0.0.1:${server.port}${base}`, stop: (now: boolean) => server.stop(now) };
}

/** The files that a path within a site may be: the path itself, a page without its extension, the page of a folder. */
export function namesOf(path: string): string[] {
  const inside = normalize(join("/", path)).slice(1);
  return [inside, `${inside}.html`, join(inside, "index.html")];
}

/** Returns the file of a path within a site. */
export function fileOf(folder: string, path: string): string | undefined {
  const candidates = namesOf(path).map((name) => join(folder, name));
  return candidates.find((file) => existsSync(file) && statSync(file).isFile());
}
