/** Runs publint and "Are the types wrong?" on the packages as published. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import packageFile from "../../package.json";
import { run } from "../../src/cli/run.ts";
import { buildFolder, cpuLibraryName, packageRoot, platform } from "../../src/core/paths.ts";
import { type Counts, oneFailed, onePassed, sum } from "../counts.ts";
import { packFolders } from "./pack.ts";
import { stagePlatform } from "./stage.ts";
import { stageMainOnce } from "./staged.ts";

/** Stages the package and this machine's platform package with the built dylib, and checks both tarballs. */
export async function checkPackages(): Promise<Counts> {
  const folder = await mkdtemp(join(tmpdir(), "orchard-packages-"));
  try {
    const [main, platformPackage] = [packageFile.name, `${packageFile.name}-${platform}`].map((name) =>
      join(folder, name),
    ) as [string, string];
    await stageMainOnce(main);
    await stagePlatform(platformPackage, platform, [join(buildFolder, cpuLibraryName)]);
    const counts = (await packFolders([main, platformPackage], join(folder, "tarballs"))).map(checkTarball);
    return sum(await Promise.all(counts));
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** The modules are only ECMAScript modules, so problems with CommonJS and resolution without `exports` are ignored. */
const checkTarball = async (path: string): Promise<Counts> =>
  sum([await tool("publint", "run", path, "--strict"), await tool("attw", path, "--profile", "esm-only")]);

async function tool(name: string, ...words: string[]): Promise<Counts> {
  const program = join(packageRoot, "node_modules", ".bin", name);
  const { status, output } = await run([process.execPath, program, ...words]);
  if (status === 0) return onePassed;
  console.log(output.trim());
  return oneFailed(`${name}: ${basename(words.find((word) => word.endsWith(".tgz")) ?? "")}`);
}
