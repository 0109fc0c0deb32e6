/** Builds the dylibs into `build/<platform>-<arch>`. Incremental: only what changed is compiled. */
import { installDependencies } from "./dependencies.ts";

await installDependencies();
const { main } = await import("./failure.ts");
const { setUp } = await import("./toolchain/setup.ts");
const { buildCpu } = await import("./cpu/build.ts");
const { build } = await import("./swift/command.ts");
await main(async () => {
  const swift = await setUp();
  await buildCpu();
  if (swift) await build(swift);
});
