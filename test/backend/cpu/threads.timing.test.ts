/** Processor time of waiting threads. */
import { expect, test } from "bun:test";
import { packageRoot } from "../../../src/core/paths.ts";
import { bunWords } from "../../support/program.ts";

test.if(process.platform === "linux")("threads that share a processor spend little of it on waiting", () => {
  const program = `
    import { withBackend } from "./src/backend/policy.ts";
    import { ones } from "./src/index.ts";
    const x = ones([1 << 18]);
    const step = () => {
      withBackend("cpu", () => x.exp().dispose());
      for (const until = performance.now() + 0.3; performance.now() < until; );
    };
    for (let count = 0; count < 50; count++) step();
    const before = process.cpuUsage();
    for (let count = 0; count < 400; count++) step();
    const { user, system } = process.cpuUsage(before);
    console.log(user + system);`;
  const usedBy = (threads: string) => {
    const { stdout } = Bun.spawnSync(["taskset", "-c", "0", ...bunWords, "-e", program], {
      cwd: packageRoot,
      env: { ...process.env, ORCHARD_CPU_THREADS: threads },
    });
    return Number(stdout.toString());
  };
  const ratios = [1, 2, 3].map(() => usedBy("2") / usedBy("1"));
  expect(ratios.sort((a, b) => a - b)[1]).toBeLessThan(1.4); // the ratio would be 1.75 if waiting threads spun
});
