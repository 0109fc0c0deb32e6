import { describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeMachine, parseRelease } from "../../src/cli/toolchain/install.ts";
import { withLock } from "../../src/cli/toolchain/lock.ts";
import { developmentPackages, isKnownRelease, swiftPackages } from "../../src/cli/toolchain/packages.ts";
import { cachedToolchains, isAtLeast, parseSwiftVersion } from "../../src/cli/toolchain.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { testFolder } from "../support/folder.ts";

const { path: folder } = testFolder("toolchain");

describe("the version of Swift is read", () => {
  test("Swift's version is read from the messages of Swift's and Apple's compilers", () => {
    expect(parseSwiftVersion("Swift version 6.0.3 (swift-6.0.3-RELEASE)\nTarget: x86_64")).toBe("6.0.3");
    expect(parseSwiftVersion("swift-driver version: 1.115 Apple Swift version 6.1 (swiftlang-6.1.0.110.21)")).toBe(
      "6.1",
    );
    expect(parseSwiftVersion("command not found")).toBeUndefined();
  });

  test.each([
    ["5.9", "5.9", true],
    ["5.10", "5.9", true],
    ["6.0.3", "5.9", true],
    ["5.8.1", "5.9", false],
  ] as const)("the version %s is at least %s: %p", (version, wanted, expected) => {
    expect(isAtLeast(version, wanted)).toBe(expected);
  });
});

describe("the description of the machine is read", () => {
  test("os-release is read with and without quotes", () => {
    expect(parseRelease('ID=debian\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n')).toEqual({
      ID: "debian",
      PRETTY_NAME: "Debian GNU/Linux 12 (bookworm)",
    });
  });

  test("an unsupported release is rejected in one line that says what to do", async () => {
    const path = join(folder, "os-release");
    writeFileSync(path, 'ID=fedora\nPRETTY_NAME="Fedora Linux 42"\n');
    const message = await describeMachine(path).then(String, (error: Error) => error.message);
    expect(message.split("\n")).toHaveLength(1);
    expect(message).toContain("ORCHARD_SKIP_METAL=1");
  });

  test("development files come with the release's GCC", () => {
    expect(developmentPackages("bookworm")).toContain("libstdc++-12-dev");
    expect(developmentPackages("trixie")).toContain("libstdc++-14-dev");
    expect(isKnownRelease("buster")).toBe(false);
  });

  test("no package is named twice", () => {
    expect(new Set(swiftPackages).size).toBe(swiftPackages.length);
  });
});

test("only complete toolchains are found, the newest first", () => {
  for (const name of ["swift-6.0.3-a", "swift-6.0.3-b", ".swift-6.0.3-c.partial"]) mkdirSync(join(folder, name));
  for (const name of ["swift-6.0.3-a", "swift-6.0.3-b"]) writeFileSync(join(folder, name, "stamp.json"), "{}");
  mkdirSync(join(folder, "swift-6.0.3-d"));
  expect(cachedToolchains(folder)).toEqual([join(folder, "swift-6.0.3-b"), join(folder, "swift-6.0.3-a")]);
  expect(cachedToolchains(join(folder, "nowhere"))).toEqual([]);
});

describe("the lock excludes other processes", () => {
  const path = join(folder, "lock");
  const done = join(folder, "done");
  const program = `
    const { withLock } = await import(${JSON.stringify(join(packageRoot, "src/cli/toolchain/lock.ts"))});
    await withLock(${JSON.stringify(path)}, () => {}, async () => {
      console.log("held");
      await Bun.stdin.text();
      await Bun.write(${JSON.stringify(done)}, "");
    });`;
  /** Holds the lock until its input ends. */
  const holder = () => Bun.spawn([process.execPath, "-e", program], { stdin: "pipe", stdout: "pipe" });
  const firstLine = async (child: ReturnType<typeof holder>) => {
    const reader = child.stdout.getReader();
    return new TextDecoder().decode((await reader.read()).value).trim();
  };

  test("another process waits until the holder is done, and says that it waits", async () => {
    const child = holder();
    expect(await firstLine(child)).toBe("held");
    let waited = 0;
    const wait = () => {
      waited++;
      child.stdin.end();
    };
    const wasDone = await withLock(path, wait, () => Bun.file(done).exists());
    expect({ waited, wasDone }).toEqual({ waited: 1, wasDone: true });
  });

  test("a holder that is killed leaves nothing behind", async () => {
    const child = holder();
    expect(await firstLine(child)).toBe("held");
    child.kill(9);
    await child.exited;
    let waited = 0;
    expect(
      await withLock(
        path,
        () => waited++,
        async () => 7,
      ),
    ).toBe(7);
    expect(waited).toBe(0);
  });

  test("the lock is released when the work throws", async () => {
    const failing = withLock(
      path,
      () => {},
      async () => {
        throw new Error("no");
      },
    );
    await expect(failing).rejects.toThrow("no");
    expect(
      await withLock(
        path,
        () => {},
        async () => 1,
      ),
    ).toBe(1);
  });
});
