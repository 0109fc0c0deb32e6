/** Everything that can be said without running a test: types, style, Swift's warnings, the typing of every kernel. */
import { installDependencies } from "./dependencies.ts";

await installDependencies();
const { main } = await import("./failure.ts");
const { checkEverything } = await import("./suite/suite.ts");
await main(checkEverything);
