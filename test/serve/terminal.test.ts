/** `orchard chat` in a pseudo-terminal of 80 columns. */
import { beforeAll, expect, test } from "bun:test";
import { stripVTControlCharacters } from "node:util";
import { packageRoot } from "../../src/core/paths.ts";
import { testFolder } from "../support/folder.ts";

const folder = testFolder("chat-terminal");
const model = folder.file("tiny-llama");
const [UP, INTERRUPT, END] = ["\x1b[A", "\x03", "\x04"];
const COLUMNS = 80;

beforeAll(async () => {
  const { writeModel } = await import("./folder.ts");
  await writeModel(model);
});

/** A chat, what the terminal shows, and how often it got something. */
class Terminal {
  text = "";
  pieces = 0;
  readonly child;

  constructor(...words: string[]) {
    this.child = Bun.spawn([process.execPath, "src/cli/orchard.ts", "chat", model, "--temperature", "0", ...words], {
      cwd: packageRoot,
      env: { ...process.env, ORCHARD_BACKEND: "cpu", TERM: "xterm", NODE_ENV: undefined },
      terminal: {
        ...{ cols: COLUMNS, rows: 24 },
        data: (_, bytes) => {
          this.text += new TextDecoder().decode(bytes);
          this.pieces++;
        },
      },
    });
  }

  type(keys: string): void {
    this.child.terminal!.write(keys);
  }

  /** What was shown since `from`, once it matches. */
  async shows(pattern: RegExp, from = 0): Promise<string> {
    const deadline = performance.now() + 60_000;
    while (!pattern.test(this.plain(from))) {
      if (performance.now() > deadline || this.child.exitCode !== null)
        throw new Error(`expected ${pattern}, got ${JSON.stringify(this.plain(from))}`);
      await Bun.sleep(2);
    }
    return this.plain(from);
  }

  /** Sends a message, and returns what is shown until the next prompt. */
  async say(keys: string): Promise<string> {
    const from = this.text.length;
    this.type(`${keys}\r`);
    return await this.shows(/\n> $/, from);
  }

  plain(from = 0): string {
    return stripVTControlCharacters(this.text.slice(from)).replaceAll("\r", "");
  }
}

const savedIn = async (path: string): Promise<[string, string][]> => {
  const lines = (await Bun.file(path).text()).trim().split("\n");
  return JSON.parse(lines.at(-1)!).messages.map((own: Record<string, string>) => [own["role"], own["content"]]);
};

test("an answer streams within 80 columns, and what was said is remembered, saved and forgotten", async () => {
  const [file, chat] = [folder.file("saved.jsonl"), new Terminal("--tokens", "60")];
  await chat.shows(/^> $/);
  const before = chat.pieces;
  const shown = await chat.say("the in");
  expect(shown).toMatch(/\n\[60 tokens, [\d.e+]+ tokens\/s\]\n> $/);
  expect(chat.pieces - before).toBeGreaterThan(8); // keys and a whole answer would be three or four
  const lines = shown.split("\n").map((line) => Bun.stringWidth(line));
  expect(lines.length).toBeGreaterThan(4);
  expect(Math.max(...lines)).toBeLessThanOrEqual(COLUMNS);
  expect(await chat.say(UP)).toContain("the in\n"); // what was typed last, and its answer
  await chat.say(`/save ${file}`);
  const [first, answer, again] = await savedIn(file);
  expect([first, again]).toEqual([
    ["user", "the in"],
    ["user", "the in"],
  ]);
  expect(shown.replaceAll(/\s/g, "")).toContain(answer![1].replaceAll(/\s/g, ""));
  expect(await chat.say("/nothing")).toContain("no command /nothing; /help lists them\n");
  await chat.say("/reset");
  await chat.say(`/save ${file}`);
  expect(await savedIn(file)).toEqual([]);
  chat.type("/exit\r");
  expect(await chat.child.exited).toBe(0);
});

test("Ctrl-C ends an answer and the chat goes on; where none comes, it leaves", async () => {
  const chat = new Terminal("--tokens", "230");
  await chat.shows(/^> $/);
  chat.type("the in\r");
  await chat.shows(/the in\n\s*\S/); // the answer begins
  chat.type(INTERRUPT);
  const [, count] = /\[interrupted; (\d+) tokens?, .*\]\n> $/.exec(await chat.shows(/tokens\/s\]\n> $/))!;
  expect(Number(count)).toBeLessThan(230);
  await chat.say("/reset");
  expect(await chat.say("/help")).toContain("/save FILE");
  chat.type(INTERRUPT);
  expect(await chat.child.exited).toBe(0);
});

test("Ctrl-D leaves", async () => {
  const chat = new Terminal();
  await chat.shows(/^> $/);
  chat.type(END);
  expect(await chat.child.exited).toBe(0);
});
