/** Brings what is missing: the locked dependencies, and on Linux OpenBLAS and a Swift toolchain. Doing it twice does nothing. */
import { installDependencies } from "./dependencies.ts";

await installDependencies();
const { main } = await import("./failure.ts");
const { setUp } = await import("./toolchain/setup.ts");
await main(async () => {
  await setUp();
});
