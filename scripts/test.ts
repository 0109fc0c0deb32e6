/** The whole suite: sets up, builds, checks, and runs every test. The last line is `N passed, N failed`, the true counts. */
import { installDependencies } from "./dependencies.ts";

await installDependencies();
const { main } = await import("./failure.ts");
const { testEverything } = await import("./suite/suite.ts");
await main(() => testEverything(process.argv.slice(2)));
