/** Sets up, builds, and trains a small GPT on the declaration files in `node_modules`: for about a minute, or a few steps where a device is simulated. */
import { installDependencies } from "./dependencies.ts";

await installDependencies();
const { main } = await import("./failure.ts");
const { runBuilt } = await import("./built.ts");
const { getBackend } = await import("../src/backend/policy.ts");
const { presetFor } = await import("../src/train/settings.ts");
await main(async () => {
  const preset = presetFor(getBackend()) === "tiny" ? "tiny" : "demo";
  await runBuilt(["src/cli/orchard.ts"], ["train", "--preset", preset, ...process.argv.slice(2)]);
});
