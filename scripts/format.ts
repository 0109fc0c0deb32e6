/** Formats TypeScript, C++, MSL and Swift in place. */
import { installDependencies } from "./dependencies.ts";

await installDependencies();
const { main } = await import("./failure.ts");
const { formatEverything } = await import("./format/format.ts");
await main(formatEverything);
