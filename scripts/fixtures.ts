/**
 * Makes test/fixtures anew: *.json from the pinned PyTorch, safetensors/ from the reference implementation of the format. Only needed when a
 * case is added: the files are committed.
 */
import { join } from "node:path";
import { packageRoot } from "../src/debug/paths.ts";
import { installDependencies } from "./dependencies.ts";

await installDependencies();
const { main } = await import("./failure.ts");
const { fixturesPython, reproducible, safetensorsAlone } = await import("./fixtures/environment.ts");
const { runOrFail } = await import("./run.ts");
await main(async () => {
  const [scripts, fixtures] = [join(packageRoot, "scripts", "fixtures"), join(packageRoot, "test", "fixtures")];
  const writer = [join(scripts, "safetensors_files.py"), "make", join(fixtures, "safetensors")];
  await runOrFail("Making the safetensors files", [await fixturesPython(safetensorsAlone), ...writer]);
  const command = [await fixturesPython(), join(scripts, "make.py"), fixtures];
  const { output } = await runOrFail("Making the fixtures", command, { environment: reproducible });
  console.log(output.trimEnd());
});
