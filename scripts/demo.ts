/** Sets up, builds, and runs the example that learns to read handwritten digits. */
import { installDependencies } from "./dependencies.ts";

await installDependencies();
const { main } = await import("./failure.ts");
const { runBuilt } = await import("./built.ts");
await main(() => runBuilt(["examples/demo.ts"], process.argv.slice(2)));
