/** The git hook that `bun run setup --hook` writes. */
import { expect, test } from "bun:test";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { Failure } from "../../scripts/failure.ts";
import { installHook } from "../../scripts/toolchain/hook.ts";
import { testFolder } from "../support/folder.ts";

const folder = testFolder("hook");

/** A machine without git has no commits to check. */
const withGit = test.skipIf(Bun.which("git") === null);

/** A repository, and a `bun` first on PATH that ends with this status. */
function repository(name: string, status: number) {
  const [root, bin] = [folder.file(name), folder.file(`${name}-bin`)];
  for (const path of [root, bin]) mkdirSync(path);
  writeFileSync(`${bin}/bun`, `#!/bin/sh\necho "$@" > ${bin}/words\nexit ${status}\n`);
  chmodSync(`${bin}/bun`, 0o755);
  const git = (...words: string[]) =>
    Bun.spawnSync(["git", "-c", "user.name=a", "-c", "user.email=a@b", ...words], {
      cwd: root,
      env: { ...process.env, PATH: `${bin}:${process.env["PATH"]}` },
    });
  git("init");
  writeFileSync(`${root}/file`, "");
  git("add", ".");
  return { root, commit: () => git("commit", "-m", "first").exitCode, words: () => Bun.file(`${bin}/words`).text() };
}

withGit("a commit goes through if the quick check passes", async () => {
  const { root, commit, words } = repository("green", 0);
  await installHook(root);
  await installHook(root); // a second call changes nothing
  expect(commit()).toBe(0);
  expect(await words()).toBe("run check:quick\n");
});

withGit("a commit is refused if it fails", async () => {
  const { root, commit } = repository("red", 1);
  await installHook(root);
  expect(commit()).not.toBe(0);
});

withGit("another hook is left as it is", async () => {
  const { root } = repository("other", 0);
  const path = await installHook(root);
  writeFileSync(path, "#!/bin/sh\n");
  expect(installHook(root)).rejects.toThrow(Failure);
  expect(await Bun.file(path).text()).toBe("#!/bin/sh\n");
});
