/** A package registry of the installed packages, for tests that add packages without a network. */
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { join, resolve } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";

/** A registry that runs until it is disposed of. */
export interface LocalRegistry extends Disposable {
  readonly url: string;
  /** Names that were requested, and served. */
  readonly served: ReadonlySet<string>;
}

/**
 * @param scratch a folder for the tarballs
 * @param more folders of packages that are not installed, by name
 */
export function localRegistry(scratch: string, more: Readonly<Record<string, string>> = {}): LocalRegistry {
  const served = new Set<string>();
  const server = Bun.serve({
    port: 0,
    fetch(request): Response {
      const { origin, pathname } = new URL(request.url);
      const path = decodeURIComponent(pathname).slice(1);
      if (path.startsWith("-/")) return new Response(pack(scratch, path.slice(2)));
      const folders = path in more ? [more[path]] : foldersOf(path);
      if (folders.length === 0) return new Response("no such package", { status: 404 });
      served.add(path);
      return Response.json(describe(path, folders, `${origin}/`));
    },
  });
  return { url: server.url.href, served, [Symbol.dispose]: () => void server.stop(true) };
}

interface Installed {
  readonly name: string;
  /** Below `node_modules`. */
  readonly folder: string;
}

const root = join(packageRoot, "node_modules");

/** Every package in a folder of packages, and in their nested `node_modules`. */
function* packagesIn(folder: string, scope = ""): Generator<Installed> {
  for (const entry of existsSync(join(root, folder)) ? readdirSync(join(root, folder)) : []) {
    const own = join(folder, entry);
    if (entry.startsWith("@")) yield* packagesIn(own, `${entry}/`);
    if (!existsSync(join(root, own, "package.json"))) continue;
    yield { name: `${scope}${entry}`, folder: own };
    yield* packagesIn(join(own, "node_modules"));
  }
}

const installed = Map.groupBy(packagesIn(""), ({ name }) => name);

/** The paths of a package's versions: first the shared one, then those for packages that need another. */
const foldersOf = (name: string): string[] =>
  (installed.get(name) ?? []).map(({ folder }) => folder).sort((a, b) => a.length - b.length);

/** A registry's description of a package: the installed versions. */
function describe(name: string, folders: readonly string[], url: string): object {
  const manifests = folders.map((folder) => {
    const path = resolve(root, folder, "package.json");
    const manifest = JSON.parse(readFileSync(path, "utf8")) as { version: string };
    return { ...manifest, dist: { tarball: `${url}-/${encodeURIComponent(folder)}` } };
  });
  const versions = Object.fromEntries(manifests.map((manifest) => [manifest.version, manifest]));
  return { name, "dist-tags": { latest: manifests[0].version }, versions };
}

/** An installed package as a tarball, whose files are in a folder named `package`. */
function pack(scratch: string, folder: string): Uint8Array<ArrayBuffer> {
  const staging = join(scratch, "registry", folder);
  mkdirSync(staging, { recursive: true });
  if (!existsSync(join(staging, "package"))) symlinkSync(resolve(root, folder), join(staging, "package"));
  const { stdout } = Bun.spawnSync(["tar", "-chf", "-", "-C", staging, "package"]);
  return Bun.gzipSync(new Uint8Array(stdout), { level: 1 });
}
