/** Sets up, builds, and runs the benchmarks: all of `bench/`, or those that are named. */
import { installDependencies } from "./dependencies.ts";

await installDependencies();
const { main } = await import("./failure.ts");
const { chooseBenchmarks, runBuilt } = await import("./built.ts");
await main(() => runBuilt(chooseBenchmarks(process.argv.slice(2))));
