/** Sets up, builds, and trains a small GPT on the declaration files in `node_modules`, in about a minute. */
import { installDependencies } from "./dependencies.ts";

await installDependencies();
const { main } = await import("./failure.ts");
const { runBuilt } = await import("./built.ts");
await main(() => runBuilt(["src/cli.ts"], ["train", "--preset", "demo", ...process.argv.slice(2)]));
