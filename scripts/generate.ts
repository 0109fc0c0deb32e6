/** Sets up, builds, and writes text with a trained model: `orchard generate`. */
import { installDependencies } from "./dependencies.ts";

await installDependencies();
const { main } = await import("./failure.ts");
const { runBuilt } = await import("./built.ts");
await main(() => runBuilt(["src/cli/orchard.ts"], ["generate", ...process.argv.slice(2)]));
