/** A package registry of what is installed here, for projects of tests that add packages where there is no network. */
import { existsSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/debug/paths.ts";

/** A registry that is open until it is disposed of. */
export interface LocalRegistry extends Disposable {
  readonly url: string;
  /** Names that were asked for, and served. */
  readonly served: ReadonlySet<string>;
}

/** @param scratch a folder for the tarballs */
export function localRegistry(scratch: string): LocalRegistry {
  const served = new Set<string>();
  const server = Bun.serve({
    port: 0,
    fetch(request): Response {
      const { origin, pathname } = new URL(request.url);
      const path = decodeURIComponent(pathname).slice(1);
      if (path.startsWith("-/")) return new Response(pack(scratch, path.slice(2)));
      const folder = join(packageRoot, "node_modules", path);
      if (!existsSync(join(folder, "package.json"))) return new Response("no such package", { status: 404 });
      served.add(path);
      return Response.json(describe(path, folder, `${origin}/`));
    },
  });
  return { url: server.url.href, served, [Symbol.dispose]: () => void server.stop(true) };
}

/** What a registry says of a package: the one version that is here. */
function describe(name: string, folder: string, url: string): object {
  const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { version: string };
  const version = { ...manifest, dist: { tarball: `${url}-/${encodeURIComponent(name)}` } };
  return { name, "dist-tags": { latest: manifest.version }, versions: { [manifest.version]: version } };
}

/** The installed package as a tarball, whose files are in a folder named `package`. */
function pack(scratch: string, name: string): Uint8Array<ArrayBuffer> {
  const staging = join(scratch, "registry", name);
  mkdirSync(staging, { recursive: true });
  if (!existsSync(join(staging, "package")))
    symlinkSync(join(packageRoot, "node_modules", name), join(staging, "package"));
  const { stdout } = Bun.spawnSync(["tar", "-chf", "-", "-C", staging, "package"]);
  return Bun.gzipSync(new Uint8Array(stdout), { level: 1 });
}
