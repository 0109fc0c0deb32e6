/** `orchard chat` and `orchard generate` print control characters as escapes: no model controls a terminal. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import * as fc from "fast-check";
import { packageRoot } from "../../src/core/paths.ts";
import { printable } from "../../src/core/printable.ts";
import { runChatLoop } from "../../src/serve/chat_loop.ts";
import type { ChatSession } from "../../src/serve/chat_session.ts";
import { testFolder } from "../support/folder.ts";
import { bunWords } from "../support/program.ts";
import { writeModel } from "./folder.ts";

/** Whether a text has control characters, by Unicode's categories; tabs and line ends are allowed. */
const steers = (text: string): boolean => /\p{Cc}/u.test(text.replace(/\r\n|[\n\t]/g, ""));

test("control characters become escapes, and nothing else changes", () => {
  const unit = fc.oneof(
    fc.string({ unit: "binary", maxLength: 1 }),
    fc.integer({ min: 0, max: 0xa0 }).map((own) => String.fromCharCode(own)),
  );
  fc.assert(
    fc.property(fc.string({ unit }), (text) => {
      const shown = printable(text);
      expect([text, steers(shown)]).toEqual([text, false]);
      if (!steers(text)) expect(shown).toBe(text);
      expect(shown.length).toBe(
        text.length + 3 * [...text.replaceAll("\r\n", "").matchAll(/(?![\n\t])\p{Cc}/gu)].length,
      );
    }),
    { numRuns: 500, seed: 1 },
  );
  expect(printable("\x1b]0;a\x07\u009b2J\r\nb\rc")).toBe("\\x1b]0;a\\x07\\x9b2J\r\nb\\x0dc");
});

test.each([undefined, 80])("a chat of %p columns prints control characters as escapes", async (columns) => {
  const session = {
    async *say() {
      yield* ["red \x1b[3", "1m\x07", "\u009b2J\n"];
    },
    pace: { tokens: 1, tokensPerSecond: 1 },
  } as unknown as ChatSession;
  const [input, output, notes] = [new PassThrough(), new PassThrough(), new PassThrough()];
  let said = "";
  output.on("data", (part) => (said += part));
  const ended = runChatLoop(session, { input, output, notes, columns });
  input.write("hello\n/exit\n");
  await ended;
  expect(said).toContain("\\x1b[31m\\x07\\x9b2J");
});

test("orchard generate prints control characters as escapes", async () => {
  const { path } = testFolder("printable");
  await writeModel(join(path, "tiny"));
  let escapes = 0;
  for (const seed of ["1", "2", "3"]) {
    const words = ["generate", join(path, "tiny"), "--prompt", "the", "--tokens", "120", "--seed", seed];
    const child = Bun.spawn([...bunWords, "src/cli/orchard.ts", ...words], {
      ...({
        cwd: packageRoot,
        stdout: "pipe",
        stderr: "pipe",
        env: { ...process.env, ORCHARD_BACKEND: "cpu" },
      } as const),
    });
    const said = await new Response(child.stdout).text();
    expect([await child.exited, steers(said)]).toEqual([0, false]);
    escapes += said.split("\\x").length - 1;
  }
  expect(escapes).toBeGreaterThan(0); // the random model generates some control characters
});
