/** The progress of loops, as a program writes it on standard error. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { ArgumentError, data } from "../../src/index.ts";
import { testFolder } from "../support/folder.ts";
import { bunWords } from "../support/program.ts";

const folder = testFolder("progress").path;

/** Runs a program with this body; returns the lines on standard error that are not empty, and standard output. */
async function run(body: string): Promise<{ readonly lines: string[]; readonly output: string }> {
  const path = join(folder, `${Bun.hash(body)}.ts`);
  await Bun.write(path, `import { data } from ${JSON.stringify(join(packageRoot, "src", "index.ts"))};\n${body}`);
  const program = Bun.spawn([...bunWords, path], { stdout: "pipe", stderr: "pipe" });
  const [errors, output] = await Promise.all([program.stderr.text(), program.stdout.text()]);
  expect(await program.exited).toBe(0);
  return { lines: errors.split("\n").filter(Boolean), output };
}

test("a bar shows the batches of a loader with figures, and ends", async () => {
  const { lines, output } = await run(`
    const loader = new data.DataLoader({ length: 23, get: (index) => index }, 4);
    loader.setState({ epoch: 0, batch: 2, seed: 0n });
    const batches = data.progress(loader, { label: "first\\x1b" });
    let count = 0;
    for await (const x of batches) batches.show({ loss: 0.123456, seen: (count += x.size), name: "a\\x1bb" });
    console.log(count);
  `);
  expect(output).toBe("15\n");
  expect(lines.at(-1)).toMatch(
    /^first\\x1b │ █{20} 6\/6 │ loss 0\.1235, seen 15, name a\\x1bb │ 0 s │ [\d.]+[KM]?\/s$/,
  );
});

test("bars of nested loops: the inner ones stay above the outer one; the total may be unknown", async () => {
  const { lines } = await run(`
    for await (const epoch of data.progress([1, 2], { label: "epochs" })) {
      const items = data.progress((function* () { yield* [1, 2, 3]; })(), { label: \`epoch \${epoch}\` });
      for await (const _ of items);
    }
    for await (const _ of data.progress(new Set([1]).values(), { total: 4 }));
  `);
  expect(lines.filter((line) => line.startsWith("epoch 1 │ 3 │"))).toHaveLength(1);
  expect(lines.findLast((line) => line.startsWith("epochs"))).toMatch(/^epochs │ █{20} 2\/2 │/);
  expect(lines.at(-1)).toMatch(/^█{5}░{15} 1\/4 │/);
});

test("leaving a loop, also by an error, ends its bar", async () => {
  const { lines } = await run(`
    for await (const each of data.progress([1, 2, 3])) if (each === 2) break;
    try { for await (const _ of data.progress([1, 2])) throw new Error("no"); } catch {}
    console.log("after");
  `);
  expect(lines.map((line) => line.match(/\d\/\d/)?.[0])).toContain("1/3");
});

test("rejects values that can't be iterated over, and invalid figures", () => {
  expect(() => data.progress(5 as never)).toThrow(ArgumentError);
  expect(() => data.progress([1]).show({ loss: [1] as never })).toThrow(ArgumentError);
});
