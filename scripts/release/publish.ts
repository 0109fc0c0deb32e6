/** Publishes the tarballs of a release. */
import { resolve } from "node:path";
import { runOrFail } from "../../src/cli/run.ts";
import { Failure } from "../failure.ts";

/**
 * A tag other than `latest`: users who name no version get the previous release until this one has been tested from the
 * registry.
 */
const TAG = "next";

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly repository?: unknown;
}

export interface Tarball extends Manifest {
  readonly path: string;
  /** In the registries' format: `sha512-…`. */
  readonly integrity: string;
}

export interface PublishOptions {
  /** Further flags for npm: `--provenance`. */
  readonly flags?: readonly string[];
  /** Variables that select a registry on this machine, which accepts packages without a repository. */
  readonly local?: Record<string, string>;
}

/**
 * Publishes the tarballs in a folder with `npm publish` under the tag `next`, the package that depends on the others
 * last. Versions that the registry has already are skipped, so that a failed release can be repeated.
 *
 * @returns a line for each tarball
 * @throws {Failure} if the registry has a version with other contents, or rejects one, and if a package does not name
 * its repository
 */
export async function publish(folder: string, { flags = [], local }: PublishOptions = {}): Promise<string[]> {
  const names = [...new Bun.Glob("*.tgz").scanSync(folder)];
  const tarballs = await Promise.all(names.map((name) => readTarball(resolve(folder, name))));
  if (tarballs.length === 0) throw new Failure(`There are no tarballs in ${folder}.`);
  if (!local) checkRepository(tarballs);
  const registry = await registryOf(folder, local);
  const lines: string[] = [];
  for (const tarball of tarballs.sort((a, b) => b.name.length - a.name.length || a.name.localeCompare(b.name))) {
    const version = `${tarball.name}@${tarball.version}`;
    const published = await integrityIn(registry, tarball);
    if (published === tarball.integrity) lines.push(`${version}: it is published already`);
    else if (published !== undefined)
      throw new Failure(`${version} is published with other contents. A version can't be replaced: raise it.`);
    else {
      const command = ["npm", "publish", tarball.path, "--access", "public", "--tag", TAG, ...flags];
      await runOrFail(`Publishing ${version}`, command, { cwd: folder, environment: local ?? {} });
      lines.push(`${version}: published as ${TAG}`);
    }
  }
  return lines;
}

/** Reads a tarball's manifest, and computes its hash. */
export async function readTarball(path: string): Promise<Tarball> {
  const { output } = await runOrFail(`Reading ${path}`, ["tar", "-xzOf", path, "package/package.json"]);
  const { name, version, repository } = JSON.parse(output) as Manifest;
  const hash = new Bun.CryptoHasher("sha512").update(await Bun.file(path).bytes()).digest("base64");
  return { path, name, version, repository, integrity: `sha512-${hash}` };
}

/** npm checks the provenance of a package against its repository, and pages of registries link to it. */
function checkRepository(tarballs: readonly Tarball[]): void {
  const without = tarballs.filter(({ repository }) => repository === undefined).map(({ name }) => name);
  if (without.length > 0)
    throw new Failure(
      `${without.join(", ")}: no repository in package.json. Set it before packing: ` +
        '`npm pkg set repository.type=git "repository.url=git+https://HOST/OWNER/NAME.git"`.',
    );
}

/** Returns the registry to which npm publishes from a folder. */
async function registryOf(folder: string, environment: Record<string, string> = {}): Promise<string> {
  const { output } = await runOrFail("Asking npm for its registry", ["npm", "config", "get", "registry"], {
    cwd: folder,
    environment,
  });
  return output.trim().replace(/\/*$/, "/");
}

/** Returns the registry's hash of a version; undefined if it has none. */
async function integrityIn(registry: string, { name, version }: Tarball): Promise<string | undefined> {
  const response = await fetch(`${registry}${name}`);
  if (response.status === 404) return undefined;
  if (!response.ok) throw new Failure(`${registry} answered with ${response.status} when asked for ${name}.`);
  const { versions } = (await response.json()) as Packument;
  return versions?.[version]?.dist.integrity;
}

interface Packument {
  readonly versions?: Readonly<Record<string, { readonly dist: { readonly integrity: string } }>>;
}
