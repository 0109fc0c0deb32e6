/** Sets up, builds, and trains: `orchard train`. */
import { installDependencies } from "./dependencies.ts";

await installDependencies();
const { main } = await import("./failure.ts");
const { runBuilt } = await import("./built.ts");
await main(() => runBuilt(["src/cli/orchard.ts"], ["train", ...process.argv.slice(2)]));
