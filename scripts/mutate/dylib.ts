/** Builds the cpu dylib of a copy of the repository, only for this processor. It runs in the copy. */
import { buildCpuLibrary, usualBuild } from "../cpu/build.ts";
import { main } from "../failure.ts";

await main(async () => {
  await buildCpuLibrary(undefined, { ...(await usualBuild("machine")), isApart: true });
});
