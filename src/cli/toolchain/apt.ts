/**
 * Runs apt without root and without changing the system: it reads the system's mirror, proxy and keys, and keeps its
 * lists, caches and status in a private folder.
 */
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { Failure } from "../failure.ts";
import { run, tail } from "../run.ts";

/** An apt repository. */
export interface Target {
  readonly uri: string;
  readonly suite: string;
  readonly component: string;
}

const targetFormat = "$(REPO_URI) $(RELEASE) $(COMPONENT)";

/** Parses the output of `apt-get indextargets` in the format above. */
export function parseTargets(text: string): Target[] {
  return text
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter((fields) => fields.length === 3)
    .map(([uri, suite, component]) => ({ uri: uri, suite: suite, component: component }));
}

/** Returns the mirror of the machine's release. The mirror's archive also has the other releases. */
export function chooseMirror(targets: readonly Target[], codename: string): string | undefined {
  const main = targets.filter(({ component }) => component === "main");
  const source = main.find(({ suite }) => suite === codename || suite === "stable" || suite === "oldstable");
  return source?.uri;
}

/** Debian's archive keys, if they are outside apt's trusted folder. */
const keyrings = ["/usr/share/keyrings/debian-archive-keyring.gpg", "/usr/share/keyrings/debian-archive-keyring.pgp"];

export function sourcesList(
  mirror: string,
  suites: readonly string[],
  keyring = keyrings.find((path) => existsSync(path)),
): string {
  const options = keyring ? `[signed-by=${keyring}] ` : "";
  return [...new Set(suites)].map((suite) => `deb ${options}${mirror} ${suite} main\n`).join("");
}

/** Returns apt's options that keep all files inside `folder`. */
export function aptOptions(folder: string): string[] {
  const options = {
    "Dir::State": join(folder, "state"),
    "Dir::State::status": join(folder, "status"),
    "Dir::Cache": join(folder, "cache"),
    "Dir::Etc::sourcelist": join(folder, "sources.list"),
    "Dir::Etc::sourceparts": "-",
    "Dir::Etc::preferences": "-",
    "Dir::Etc::preferencesparts": "-",
    "Acquire::Languages": "none",
    "Acquire::Retries": "3",
    "APT::Sandbox::User": "root", // apt's user `_apt` can't enter the user's folder
    "APT::Status-Fd": "1",
  };
  return Object.entries(options).flatMap(([name, value]) => ["-o", `${name}=${value}`]);
}

/** Disables hooks that would change the system after an update. Command-line options can't remove them. */
export const aptConfiguration = (included: string | undefined): string =>
  `${included ? `#include "${included}";\n` : ""}#clear APT::Update;\n`;

/** Parses the percentage in `dlstatus:<item>:<percent>:<text>`, which apt prints to its status descriptor. */
export function parseProgress(line: string): number | undefined {
  const percent = /^dlstatus:\d+:([\d.]+):/.exec(line)?.[1];
  return percent === undefined ? undefined : Number(percent);
}

export class Apt {
  private constructor(
    private readonly folder: string,
    private readonly environment: Record<string, string>,
  ) {}

  /** Creates the private folder and fetches the package lists of `suites`. */
  static async open(folder: string, codename: string, suites: readonly string[]): Promise<Apt> {
    const mirror = chooseMirror(await configuredTargets(), codename);
    if (!mirror)
      throw new Failure(
        `apt's sources have no repository for Debian ${codename} main, so there is no mirror to download from. ` +
          "Install Swift 6.0 or newer (swift.org/install), or set ORCHARD_SKIP_METAL=1.",
      );
    for (const part of ["state/lists/partial", "cache/archives/partial", "archives"])
      await mkdir(join(folder, part), { recursive: true });
    await Bun.write(join(folder, "status"), "");
    await Bun.write(join(folder, "sources.list"), sourcesList(mirror, suites));
    await Bun.write(join(folder, "apt.conf"), aptConfiguration(process.env["APT_CONFIG"]));
    const apt = new Apt(folder, { APT_CONFIG: join(folder, "apt.conf"), LC_ALL: "C" });
    await apt.call("Debian's package lists can't be fetched", ["update"]);
    return apt;
  }

  /** Downloads packages into the private folder, except those already downloaded. Returns their files. */
  async download(packages: readonly string[], suite: string, onProgress: (percent: number) => void): Promise<string[]> {
    const cwd = join(this.folder, "archives", suite);
    await mkdir(cwd, { recursive: true });
    await this.call(
      `Debian ${suite}'s packages can't be downloaded`,
      ["download", ...packages.map((name) => `${name}/${suite}`)],
      cwd,
      onProgress,
    );
    return [...new Bun.Glob("*.deb").scanSync({ cwd, absolute: true })].sort();
  }

  private async call(
    failure: string,
    command: string[],
    cwd = this.folder,
    onProgress?: (percent: number) => void,
  ): Promise<void> {
    const onLine = (line: string) => {
      const percent = parseProgress(line);
      if (percent !== undefined) onProgress?.(percent);
    };
    const result = await run(["apt-get", "-q", ...aptOptions(this.folder), ...command], {
      cwd,
      environment: this.environment,
      onLine,
    });
    // `update` succeeds with warnings if the network is down.
    if (result.status === 0 && !/^(E|W): (Failed to fetch|Some index)/m.test(result.output)) return;
    throw new Failure(`${failure}: ${reason(result.output)}`);
  }
}

async function configuredTargets(): Promise<Target[]> {
  const { status, output } = await run(["apt-get", "indextargets", "--format", targetFormat, "Created-By: Packages"]);
  if (status !== 0) throw new Failure(`apt's sources can't be read: ${reason(output)}`);
  return parseTargets(output);
}

/** Returns apt's first error or warning, with an explanation for common causes. */
export function reason(output: string): string {
  const line = output.split("\n").find((text) => /^(E|W|Err)[: ]/.test(text)) ?? tail(output, 1);
  if (/No space left/i.test(output)) return `the disk is full (${line})`;
  if (/resolv|connect|unreachable|timed out|Network/i.test(output))
    return `the network or the mirror does not answer (${line})`;
  return line;
}
