/** The documents agree with the repository. */
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import packageFile from "../../package.json";
import { isVendored } from "../../scripts/vendor/vendor.ts";
import { devicePlatforms, platformPackages } from "../../src/backend/library.ts";
import { environmentVariables } from "../../src/core/environment.ts";
import { packageRoot } from "../../src/core/paths.ts";

const read = (path: string) => readFileSync(join(packageRoot, path), "utf8");
const files = (pattern: string) => [...new Bun.Glob(pattern).scanSync({ cwd: packageRoot })].sort();
const sources = [...files("src/**/*.ts"), ...files("scripts/**/*.ts")];

describe("environment variables are documented", () => {
  const page = [...read("docs/environment.md").matchAll(/^\| `([A-Z_]+)` \| (.*?) \| (.*) \|$/gm)];

  test("docs/environment.md equals the declaration, row by row", () => {
    const declared = Object.entries(environmentVariables).map(([name, { fallback, meaning }]) => [
      name,
      fallback,
      meaning,
    ]);
    expect(page.map(([, ...row]) => row)).toEqual(declared);
  });

  test("every variable of ours in the code is declared", () => {
    const named = sources.flatMap((path) =>
      [...read(path).matchAll(/\bORCHARD_(?:LIBRARY|SKIP|DEBUG|METAL|CPU|BLAS)[A-Z_]*\b/g)].map(([name]) => name),
    );
    expect([...new Set(named)].filter((name) => !(name in environmentVariables))).toEqual([]);
  });

  test("the software device's settings match its table", () => {
    const rows = read("swift/Sources/MetalRuntime/support/settings.cpp").matchAll(/Setting::\w+, "(\w+)"/g);
    const settings = [...rows].map(([, name]) => `ORCHARD_METAL_${name.toUpperCase()}`).sort();
    const declared = Object.keys(environmentVariables).filter((name) => name.startsWith("ORCHARD_METAL_"));
    expect(declared.sort()).toEqual(settings);
  });

  test("the README's variables are declared", () => {
    const named = [...read("README.md").matchAll(/`((?:ORCHARD|XDG)_[A-Z_]+)=/g)].map(([, name]) => name);
    expect(named.length).toBeGreaterThan(3);
    expect(named.filter((name) => !(name in environmentVariables))).toEqual([]);
  });
});

describe("the package exports what exists", () => {
  test("everything that is exported or run exists", () => {
    const entries = Object.values(packageFile.exports).flatMap((entry) =>
      typeof entry === "string" ? [entry] : Object.values(entry),
    );
    for (const path of [...entries, ...Object.values(packageFile.bin)])
      expect(existsSync(join(packageRoot, path))).toBe(true);
  });

  test("every script's file exists", () => {
    const named = Object.values(packageFile.scripts).flatMap((command) => command.match(/\S+\.ts\b/g) ?? []);
    expect(named.length).toBeGreaterThan(5);
    for (const path of named) expect(existsSync(join(packageRoot, path))).toBe(true);
  });

  test("every version is exact, in the lock file too, and the lock file names no host", () => {
    const { dependencies, devDependencies, peerDependencies } = packageFile;
    const versions = [dependencies, devDependencies, peerDependencies].flatMap(Object.values) as string[];
    expect(versions.filter((version) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual([]);
    expect(read("bun.lock")).not.toMatch(/https?:\/\//);
  });

  test("the package depends on the packages that its sources import, or contains a copy, and on no other", () => {
    const withoutExamples = (text: string) => text.replaceAll(/^ *\*.*$/gm, "");
    const imported = files("src/**/*.ts").flatMap((path) =>
      [...withoutExamples(read(path)).matchAll(/\b(?:from |import\(|require\()"([^."\s][^"\s]*)"/g)].map(
        ([, name]) => name,
      ),
    );
    expect(imported.length).toBeGreaterThan(10);
    const packages = imported
      .filter((name) => !/^(?:node|bun):/.test(name))
      .map((name) => /^(?:@[^/]+\/)?[^/]+/.exec(name)![0]);
    const { dependencies, peerDependencies } = packageFile;
    const others = packages.filter((name) => !isVendored(name));
    expect([...new Set(others)].sort()).toEqual(Object.keys({ ...dependencies, ...peerDependencies }).sort());
  });

  test("an optional package is not installed with the package, and an error names the version", () => {
    const { peerDependencies, peerDependenciesMeta, devDependencies } = packageFile;
    const names = ["@wasm-audio-decoders/flac", "mpg123-decoder", "sharp"] as const;
    expect(peerDependenciesMeta).toEqual(Object.fromEntries(names.map((name) => [name, { optional: true }])) as never);
    expect(peerDependencies).toEqual(Object.fromEntries(names.map((name) => [name, devDependencies[name]])) as never);
    expect(read("src/io/image/sharp.ts")).toContain(`const VERSION = "${peerDependencies.sharp}";`);
    for (const name of ["@wasm-audio-decoders/flac", "mpg123-decoder"] as const)
      expect(read("src/io/audio/packages.ts").replaceAll(/\s+/g, " ")).toContain(
        `name: "${name}", version: "${peerDependencies[name]}"`,
      );
  });

  test("the README, continuous integration and package.json name one version of Bun", () => {
    const named = [read("README.md"), read(".ci/run"), ...files(".github/workflows/*.yml").map(read)].flatMap((text) =>
      [...text.matchAll(/bun@([\d.]+\d)/g)].map(([, version]) => version),
    );
    expect(new Set(named)).toEqual(new Set([packageFile.engines.bun.replace(">=", "")]));
  });
});

describe("the repository is set up as documented", () => {
  test("the compiler's options are strict", () => {
    const { compilerOptions } = JSON.parse(read("tsconfig.json")) as { compilerOptions: Record<string, unknown> };
    for (const option of ["strict", "exactOptionalPropertyTypes", "noImplicitReturns"])
      expect([option, compilerOptions[option]]).toEqual([option, true]);
    expect(compilerOptions["declaration"]).toBe(true); // the check also reports errors of declarations
    // A test of types may mark a line as wrong, with the reason. It fails if the line is right.
    const silencers = /@ts-(?:ignore|nocheck)|@ts-expect-error(?! \w)/;
    const loose = [
      ...files("{src,scripts,bench,examples}/**/*.ts").filter((path) => /@ts-\w/.test(read(path))),
      ...files("test/**/*.ts").filter(
        (path) => path !== "test/scripts/repository.test.ts" && silencers.test(read(path)),
      ),
    ];
    expect(loose).toEqual([]);
  });

  test("the license is MIT, in the file and in package.json", () => {
    expect(packageFile.license).toBe("MIT");
    expect(read("LICENSE")).toStartWith("MIT License");
  });

  test("the README gives the two commands, for a machine with Bun and for one without", () => {
    for (const name of ["demo", "test"] as const) {
      expect(read("README.md")).toContain(`| \`bun run ${name}\` | \`npx --yes bun@`);
      expect(packageFile.scripts[name]).toBe(`bun scripts/launch.ts ${name}`);
    }
  });

  test("continuous integration runs .ci/run on Linux and macOS (with Metal's validation) and keeps the report", () => {
    const [, linux, sanitize, macos] = read(".github/workflows/ci.yml").split(/^ {2}(?:linux|sanitize|macos):$/m);
    for (const job of [linux, macos]) {
      expect(job).toMatch(/run: \.ci\/run(?: |\n)/);
      expect(job).toMatch(/upload-artifact@v4\n +if: always\(\)[\s\S]*path: report\//);
    }
    const shards = /shard: \[([\d, ]+)\]/.exec(linux)![1].split(", ");
    expect(shards).toEqual(shards.map((_, at) => `${at + 1}`));
    expect(linux).toContain(`--shard \${{ matrix.shard }}/${shards.length} `);
    expect(linux).toContain("github.event_name == 'schedule' && '--all'");
    expect(macos).toContain('METAL_DEVICE_WRAPPER_TYPE: "1"');
    expect(macos).toMatch(
      /- name: .*\n +if: always\(\)\n +run: npx --yes bun@[\d.]+ run verify:apple kernels assumptions\n/,
    );
    expect(read(".ci/run")).toMatch(/^npx --yes bun@[\d.]+ run test /m);
    expect(sanitize).toMatch(/- run: npx --yes bun@[\d.]+ run check:sanitize\n/);
  });
});

test("each supported macOS is tested with an Xcode of its time, and each pair keeps a separate report", () => {
  const text = read(".github/workflows/ci.yml");
  const { jobs } = Bun.YAML.parse(text) as { jobs: { macos: MacJob } };
  const pairs = jobs.macos.strategy.matrix.include;
  expect(pairs.map(({ system, xcode }) => `${system} ${xcode}`)).toEqual([
    "macos-14 16",
    "macos-15 16",
    "macos-15 26",
    "macos-26 26",
  ]);
  const [system, xcode] = ["system", "xcode"].map((name) => `\${{ matrix.${name} }}`);
  expect(jobs.macos["runs-on"]).toBe(system);
  expect(text).toContain(`name: report-${system}-xcode-${xcode}\n`);
  expect(text).toContain(`'Xcode_${xcode}*.app'`);
});

interface MacJob {
  readonly "runs-on": string;
  readonly strategy: { readonly matrix: { readonly include: readonly { system: string; xcode: number }[] } };
}

test("a release packs each platform on a separate runner, and publishes with provenance and checksums", () => {
  const text = read(".github/workflows/release.yml");
  const { jobs } = Bun.YAML.parse(text) as { jobs: Record<"pack" | "publish" | "installed", Job> };
  const packed = jobs.pack.strategy.matrix.include.flatMap(({ platform, also }) => [platform, ...(also ? [also] : [])]);
  expect(packed.sort()).toEqual([...platformPackages].sort());
  expect(text).toMatch(/run release --local --platform \$\{\{ matrix\.platform \}\}/);
  expect(text).toContain(`test "$(ls | wc -l)" = ${platformPackages.length + devicePlatforms.length + 1}`);
  expect(jobs.publish.permissions).toEqual({
    contents: "write",
    "id-token": "write",
    attestations: "write",
  });
  expect(jobs.installed.strategy.matrix.system.map((system) => system.replace(/-.*-arm$|-.*/, ""))).toEqual([
    "ubuntu",
    "ubuntu",
    "macos",
  ]);
  expect(text).toContain("--provenance");
  expect(text).toContain("SHA256SUMS");
  expect(text).not.toMatch(/NODE_AUTH_TOKEN|NPM_TOKEN/);
});

interface Job {
  readonly strategy: {
    readonly matrix: {
      readonly include: readonly { readonly platform: string; readonly also?: string }[];
      readonly system: readonly string[];
    };
  };
  readonly permissions: unknown;
}

describe("links of documents exist", () => {
  const documents = [...files("*.md"), ...files("docs/**/*.md")];
  const links = documents.flatMap((document) =>
    [...read(document).matchAll(/\]\(([^)#\s]+)[^)]*\)/g)].map(([, target]) => ({ document, target: target })),
  );
  const local = links.filter(({ target }) => !/^[a-z]+:/.test(target));

  test.each(local)("$document links to $target, which exists", ({ document, target }) => {
    expect(existsSync(join(packageRoot, dirname(document), target))).toBe(true);
  });

  test("decisions are numbered without a gap and have the four parts", () => {
    const decisions = files("docs/decisions/*.md");
    expect(decisions.map((path) => Number(path.slice(15, 19)))).toEqual(decisions.map((_, index) => index + 1));
    for (const path of decisions)
      expect([...read(path).matchAll(/^## (.*)$/gm)].map(([, title]) => title)).toEqual([
        "Context",
        "Choice",
        "What was tried",
        "What would change it",
      ]);
  });
});
