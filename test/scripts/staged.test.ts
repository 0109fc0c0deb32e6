/** Tests and checks share one staged package for each state of the sources, also with other clones on the machine. */
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { stageMainOnce } from "../../scripts/release/staged.ts";
import { testFolder } from "../support/folder.ts";

test("the package is staged once, in a clone and in others, and a failed attempt is not kept", async () => {
  const { path, file } = testFolder("staged");
  let calls = 0;
  const stage = async (folder: string) => {
    calls++;
    if (calls === 1) throw new Error("no compiler");
    const program = join(folder, "src", "index.js");
    mkdirSync(dirname(program), { recursive: true });
    writeFileSync(program, `export default ${calls};\n`, { mode: 0o755 });
  };
  const stagedIn = async (clone: string) => {
    const folder = file("package");
    await stageMainOnce(folder, { stage, parent: join(path, clone), caches: file("caches") });
    return readFileSync(join(folder, "src", "index.js"), "utf8");
  };
  await expect(stagedIn("one")).rejects.toThrow("no compiler");
  expect(existsSync(file("caches"))).toBe(false);
  expect(await stagedIn("one")).toBe("export default 2;\n");
  writeFileSync(file("package", "src", "index.js"), "changed"); // the copy is the caller's
  expect(await stagedIn("one")).toBe("export default 2;\n");
  expect(await stagedIn("other")).toBe("export default 2;\n");
  expect(calls).toBe(2);
  expect(readdirSync(file("other"))).toEqual(readdirSync(file("one")));
});
