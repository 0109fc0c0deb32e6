/** `orchard chat` in a pseudo-terminal of 80 columns. */
import { beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { stripVTControlCharacters } from "node:util";
import { packageRoot } from "../../src/core/paths.ts";
import { printable } from "../../src/core/printable.ts";
import { testFolder } from "../support/folder.ts";
import { bunWords } from "../support/program.ts";
import { waitFor } from "../support/wait.ts";

const folder = testFolder("chat-terminal");
const model = folder.file("tiny-llama");
const [UP, INTERRUPT, END] = ["\x1b[A", "\x03", "\x04"];
const COLUMNS = 80;

beforeAll(async () => {
  const { writeModel } = await import("./folder.ts");
  await writeModel(model);
});

let chats = 0;

/** A chat, and the terminal's output. */
class Terminal {
  text = "";
  readonly child;
  private readonly gate = folder.file(`gate-${chats++}`);

  /**
   * @param calls the number of times that the model computes before it waits for {@link release}; by default, it never
   * waits
   */
  constructor(words: readonly string[] = [], calls?: number) {
    const held = calls === undefined ? [] : ["--preload", "./test/serve/held_chat.ts"];
    const chat = ["src/cli/orchard.ts", "chat", model, "--temperature", "0", ...words];
    this.child = Bun.spawn([...bunWords, ...held, ...chat], {
      cwd: packageRoot,
      env: {
        ...process.env,
        ORCHARD_BACKEND: "cpu",
        TERM: "xterm",
        NODE_ENV: undefined,
        HELD_CALLS: `${calls}`,
        HELD_UNTIL: this.gate,
      },
      terminal: {
        cols: COLUMNS,
        rows: 24,
        data: (_, bytes) => {
          this.text += new TextDecoder().decode(bytes);
        },
      },
    });
  }

  /** Lets the model continue. */
  release(): void {
    writeFileSync(this.gate, "");
  }

  type(keys: string): void {
    this.child.terminal!.write(keys);
  }

  /** The output since `from`, once it matches. */
  async shows(pattern: RegExp, from = 0): Promise<string> {
    const shown = () => this.plain(from);
    const isThere = () => {
      if (pattern.test(shown())) return true;
      if (this.child.exitCode !== null) throw new Error(`expected ${pattern}, got an end after ${shown()}`);
      return false;
    };
    await waitFor(`the terminal to show ${pattern}`, isThere, { state: shown });
    return shown();
  }

  /** Sends a message, and returns the output until the next prompt. */
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

test("an answer streams within 80 columns, and the conversation is remembered, saved and forgotten", async () => {
  const [file, chat] = [folder.file("saved.jsonl"), new Terminal(["--tokens", "60"], 30)];
  await chat.shows(/^> $/);
  const from = chat.text.length;
  chat.type("the in\r");
  await chat.shows(/the in\n\s*\S/, from); // the model waits before the second half of the tokens
  chat.release();
  const shown = await chat.shows(/\n> $/, from);
  expect(shown).toMatch(/\n\[60 tokens, [\d.e+]+ tokens\/s\]\n> $/);
  const lines = shown.split("\n").map((line) => Bun.stringWidth(line));
  expect(lines.length).toBeGreaterThan(4);
  expect(Math.max(...lines)).toBeLessThanOrEqual(COLUMNS);
  expect(await chat.say(UP)).toContain("the in\n"); // repeats the user's last message; the model answers
  await chat.say(`/save ${file}`);
  const [first, answer, again] = await savedIn(file);
  expect([first, again]).toEqual([
    ["user", "the in"],
    ["user", "the in"],
  ]);
  expect(shown.replaceAll(/\s/g, "")).toContain(printable(answer[1]).replaceAll(/\s/g, ""));
  expect(await chat.say("/nothing")).toContain("unknown command /nothing; /help lists the commands\n");
  await chat.say("/reset");
  await chat.say(`/save ${file}`);
  expect(await savedIn(file)).toEqual([]);
  chat.type("/exit\r");
  expect(await chat.child.exited).toBe(0);
});

test("Ctrl-C ends an answer and the chat continues; between answers it leaves", async () => {
  const chat = new Terminal(["--tokens", "230"], 30);
  await chat.shows(/^> $/);
  chat.type("the in\r");
  await chat.shows(/the in\n\s*\S/); // the answer begins
  chat.type(INTERRUPT);
  const [, count] = /\[interrupted; (\d+) tokens?, .*\]\n> $/.exec(await chat.shows(/tokens\/s\]\n> $/))!;
  expect(Number(count)).toBeLessThanOrEqual(30);
  chat.release();
  await chat.say("/reset");
  expect(await chat.say("/help")).toContain("/save FILE");
  chat.type(INTERRUPT);
  expect(await chat.child.exited).toBe(0);
});

test("Ctrl-D leaves the chat", async () => {
  const chat = new Terminal();
  await chat.shows(/^> $/);
  chat.type(END);
  expect(await chat.child.exited).toBe(0);
});
