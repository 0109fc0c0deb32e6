/** `orchard toolchain install`: its output if there is nothing to do, or nothing it can do. */
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { toolchainName } from "../../src/cli/toolchain/packages.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { testFolder } from "../support/folder.ts";
import { bunWords } from "../support/program.ts";

const { path: root } = testFolder("install");

/** Runs the command with no Swift on PATH and this cache folder. */
function install(cache: string, release = join(root, "none")) {
  const program = `
    import { runInstall } from ${JSON.stringify(join(packageRoot, "src/cli/toolchain/command.ts"))};
    const [folder, release] = process.argv.slice(1);
    process.exitCode = await runInstall({ folder, release });`;
  const { stdout, stderr, exitCode } = Bun.spawnSync([...bunWords, "-e", program, toolchains(cache), release], {
    env: { HOME: cache, XDG_CACHE_HOME: cache, PATH: root },
  });
  return { out: stdout.toString(), err: stderr.toString(), exitCode };
}

const toolchains = (cache: string): string => join(cache, "orchard", "toolchain");

test("an installed toolchain is named, and nothing is done", () => {
  const folder = join(toolchains(root), toolchainName);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "stamp.json"), "{}");
  expect(install(root)).toEqual({ out: `Already installed: ${folder}\n`, err: "", exitCode: 0 });
  expect(readdirSync(toolchains(root))).toEqual([toolchainName]);
});

test.if(process.platform === "linux")(
  "a system without a toolchain is rejected in one line, and left unchanged",
  () => {
    const cache = mkdtempSync(join(root, "empty-"));
    const release = join(root, "os-release");
    writeFileSync(release, 'ID=fedora\nPRETTY_NAME="Fedora Linux 42"\n');
    const { out, err, exitCode } = install(cache, release);
    expect([out, exitCode, err.trimEnd().split("\n").length]).toEqual(["", 1, 1]);
    expect(err).toContain("Install Swift 6.0 or newer (swift.org/install) and put it on PATH");
    expect(existsSync(toolchains(cache))).toBe(false);
  },
);
