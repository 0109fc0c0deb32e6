import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../../src/debug/paths.ts";
import { withoutAnnouncement } from "../../support/child.ts";

test("the README's first example runs as written, by the package's own name, and prints what it says", () => {
  const readme = readFileSync(join(packageRoot, "README.md"), "utf8");
  const example = /```ts\n(.*?)```/s.exec(readme)?.[1] ?? "";
  const promised = /console\.log\(.*?\); \/\/ (.*)/.exec(example)?.[1];
  const { stdout, stderr } = Bun.spawnSync([process.execPath, "-e", example], { cwd: packageRoot });
  expect(promised).toStartWith("Float32Array(2) [");
  expect(withoutAnnouncement(`${stdout}${stderr}`).replace(/\s+/g, " ").trim()).toBe(promised!.replace(/\s+/g, " "));
});
