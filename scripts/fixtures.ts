/**
 * Writes test/fixtures: *.json from the pinned PyTorch, models/ from Hugging Face's transformers, safetensors/ and
 * tokens/ from the reference implementations. Only needed when a case is added: the files are committed.
 */
import { join } from "node:path";
import { packageRoot } from "../src/core/paths.ts";
import { installDependencies } from "./dependencies.ts";

await installDependencies();
const { main } = await import("./failure.ts");
const { fixturesPython, reproducible, safetensorsAlone } = await import("./fixtures/environment.ts");
const { makeGpt2Fixtures } = await import("./fixtures/gpt2.ts");
const { runOrFail } = await import("./run.ts");
await main(async () => {
  const [scripts, fixtures] = [join(packageRoot, "scripts", "fixtures"), join(packageRoot, "test", "fixtures")];
  const make = async (requirements: string | undefined, ...words: readonly string[]): Promise<void> => {
    const command = [await fixturesPython(requirements), ...words];
    const { output } = await runOrFail(`Making ${words.at(-1)}`, command, { environment: reproducible });
    if (output.trim()) console.log(output.trimEnd());
  };
  const models = join(scripts, "models");
  await make(undefined, join(scripts, "make.py"), fixtures);
  await make(join(models, "requirements.txt"), join(models, "make.py"), join(fixtures, "models"));
  await make(safetensorsAlone, join(scripts, "safetensors_files.py"), "make", join(fixtures, "safetensors"));
  await makeGpt2Fixtures(fixtures);
});
