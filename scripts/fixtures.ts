/** Makes test/fixtures/*.json anew from the pinned PyTorch. Only needed when a case is added: the files are committed. */
import { join } from "node:path";
import { packageRoot } from "../src/debug/paths.ts";
import { installDependencies } from "./dependencies.ts";

await installDependencies();
const { main } = await import("./failure.ts");
const { fixturesPython, reproducible } = await import("./fixtures/environment.ts");
const { runOrFail } = await import("./run.ts");
await main(async () => {
  const make = async (folder: string, requirements: string | undefined, target: string): Promise<void> => {
    const command = [await fixturesPython(requirements), join(folder, "make.py"), join(packageRoot, target)];
    const { output } = await runOrFail(`Making ${target}`, command, { environment: reproducible });
    console.log(output.trimEnd());
  };
  const folder = join(packageRoot, "scripts", "fixtures");
  const models = join(folder, "models");
  await make(folder, undefined, join("test", "fixtures"));
  await make(models, join(models, "requirements.txt"), join("test", "fixtures", "models"));
});
