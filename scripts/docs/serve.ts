/** A server of files on the loopback address, with addresses as the site has them: without `.html`. */
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

/** The file of a path within a site: itself, a page without its ending, or the page of a folder. */
export function fileOf(folder: string, path: string): string | undefined {
  const inside = normalize(join("/", path));
  const candidates = [inside, `${inside}.html`, join(inside, "index.html")].map((name) => join(folder, name));
  return candidates.find((file) => existsSync(file) && statSync(file).isFile());
}
