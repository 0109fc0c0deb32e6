/** A package registry on the loopback address: Verdaccio, which forwards other requests to the usual registry. */
import { cp, mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { runOrFail } from "../../src/cli/run.ts";
import { cacheFolder } from "../../src/core/paths.ts";
import { Failure } from "../failure.ts";

/** A registry that runs until it is disposed. */
export interface Registry extends AsyncDisposable {
  readonly url: string;
  /** Variables with which npm and Bun use the registry. */
  readonly environment: Record<string, string>;
}

/** @param folder for the registry's packages; it is emptied first */
export async function startRegistry(folder: string): Promise<Registry> {
  const program = await installed();
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const address = `127.0.0.1:${freePort()}`;
  const url = `http://${address}/`;
  const config = join(folder, "config.yaml");
  await Bun.write(config, JSON.stringify(settings(folder, await usualRegistry()))); // JSON is YAML
  const userSettings = join(folder, "npmrc");
  await Bun.write(userSettings, `registry=${url}\n//${address}/:_authToken=local\nupdate-notifier=false\n`);
  const child = Bun.spawn([process.execPath, program, "--config", config, "--listen", address], {
    cwd: folder,
    stdio: ["ignore", Bun.file(join(folder, "log")), Bun.file(join(folder, "errors"))],
  });
  const stop = async () => {
    child.kill();
    await child.exited;
  };
  try {
    await answering(url, () => child.exitCode);
  } catch (error) {
    await stop();
    throw error;
  }
  const environment = {
    npm_config_userconfig: userSettings,
    npm_config_registry: url,
    npm_config_cache: join(folder, "npm"),
    BUN_CONFIG_REGISTRY: url,
  };
  return { url, environment, [Symbol.asyncDispose]: stop };
}

/** Verdaccio, installed once per lock file, since it is not a dependency of the repository. */
async function installed(): Promise<string> {
  const source = join(import.meta.dir, "verdaccio");
  const key = Bun.hash(await Bun.file(join(source, "bun.lock")).bytes()).toString(16);
  const folder = join(cacheFolder(), "release", `verdaccio-${key}`);
  const program = join(folder, "node_modules", "verdaccio", "bin", "verdaccio");
  if (await Bun.file(program).exists()) return program;
  const draft = `${folder}.${process.pid}`;
  await cp(source, draft, { recursive: true });
  await runOrFail("Installing Verdaccio", [process.execPath, "install", "--frozen-lockfile"], { cwd: draft });
  await rm(folder, { recursive: true, force: true });
  await rename(draft, folder);
  return program;
}

/** The repository's packages come only from here; all others come from the usual registry. */
const settings = (folder: string, upstream: string) => ({
  storage: join(folder, "storage"),
  auth: { htpasswd: { file: join(folder, "htpasswd") } },
  web: { enable: false },
  max_body_size: "200mb",
  uplinks: { upstream: { url: upstream } },
  packages: {
    "orchard-metal*": { access: "$all", publish: "$anonymous $all" },
    "**": { access: "$all", proxy: "upstream" },
  },
  log: { type: "stdout", format: "json", level: "warn" },
});

/** Returns the registry that this machine's tools use. */
async function usualRegistry(): Promise<string> {
  const named = process.env["BUN_CONFIG_REGISTRY"] ?? process.env["npm_config_registry"];
  if (named) return named;
  const npm = Bun.which("npm");
  if (!npm)
    throw new Failure("npm, which knows the package registry, is not on PATH; set BUN_CONFIG_REGISTRY instead.");
  const child = Bun.spawn([npm, "config", "get", "registry"], { stdio: ["ignore", "pipe", "ignore"] });
  return (await child.stdout.text()).trim();
}

function freePort(): number {
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const { port } = server;
  void server.stop(true);
  return port!;
}

async function answering(url: string, exitCode: () => number | null): Promise<void> {
  for (let tries = 0; tries < 300 && exitCode() === null; tries++) {
    const answer = await fetch(`${url}-/ping`).catch(() => undefined);
    if (answer?.ok) return;
    await Bun.sleep(100);
  }
  throw new Failure("Verdaccio does not answer.");
}
