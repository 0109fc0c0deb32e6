/** Makes test/fixtures/*.json anew from the pinned PyTorch. Only needed when a case is added: the files are committed. */
import { join } from "node:path";
import { packageRoot } from "../src/debug/paths.ts";
import { installDependencies } from "./dependencies.ts";

await installDependencies();
const { main } = await import("./failure.ts");
const { fixturesPython, reproducible } = await import("./fixtures/environment.ts");
const { runOrFail } = await import("./run.ts");
await main(async () => {
  const make = join(packageRoot, "scripts", "fixtures", "make.py");
  const command = [await fixturesPython(), make, join(packageRoot, "test", "fixtures")];
  const { output } = await runOrFail("Making the fixtures", command, { environment: reproducible });
  console.log(output.trimEnd());
});
