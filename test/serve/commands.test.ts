/** `orchard serve` and `orchard chat` as processes, and the loop of a chat in a terminal. */
import { beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import OpenAI from "openai";
import { packageRoot } from "../../src/core/paths.ts";
import { setBackend } from "../../src/index.ts";
import { runChatLoop } from "../../src/serve/chat_loop.ts";
import { ChatSession } from "../../src/serve/chat_session.ts";
import { loadServed } from "../../src/serve/load.ts";
import { WordWrap } from "../../src/serve/word_wrap.ts";
import { testFolder } from "../support/folder.ts";
import { bunWords } from "../support/program.ts";
import { waitFor } from "../support/wait.ts";

const { path: folder } = testFolder("serve");
const model = join(folder, "tiny-llama");
const start = (...words: string[]) =>
  Bun.spawn([...bunWords, "src/cli/orchard.ts", ...words], {
    ...({ stdin: "pipe", stdout: "pipe", stderr: "pipe" } as const),
    cwd: packageRoot,
    env: { ...process.env, ORCHARD_BACKEND: "cpu" },
  });

beforeAll(async () => {
  setBackend("cpu");
  const { writeModel } = await import("./folder.ts");
  await writeModel(model);
});

async function answerAlone(...said: string[]): Promise<string> {
  using session = new ChatSession(await loadServed(model), { temperature: 0, maxTokens: 12 });
  let last = "";
  for (const line of said) last = (await Array.fromAsync(session.say(line))).join("");
  return last;
}

describe("orchard serve answers requests", () => {
  test("orchard serve serves a folder, and on SIGTERM ends after finishing its requests", async () => {
    const child = start("serve", model, "--port", "0", "--slots", "2");
    const { value } = await child.stdout.getReader().read();
    const said = /^serving (\S+) at (\S+)\nchat in a browser: (\S+)\n$/.exec(new TextDecoder().decode(value))!;
    const [, name, url, page] = said;
    expect(name).toBe("tiny-llama");
    expect(await (await fetch(page)).text()).toContain("<!doctype html>");
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
    const options = { model: name, messages: [{ role: "user", content: "the in" } as const], temperature: 0 };
    const { choices } = await client.chat.completions.create({ ...options, max_tokens: 12 });
    expect(choices[0].message.content).toBe(await answerAlone("the in"));
    const stream = await client.chat.completions.create({ ...options, max_tokens: 12, stream: true });
    let text = "";
    let parts = 0;
    for await (const part of stream) {
      if (parts++ === 0) child.kill("SIGTERM"); // after a second signal, it would end at once
      text += part.choices[0]?.delta.content ?? "";
    }
    expect(text).toBe(choices[0].message.content!);
    expect(await child.exited).toBe(0);
    expect(await new Response(child.stderr).text()).toBe("closing; finishing the answers in progress\n");
  });

  test.each([
    [["--host", "0.0.0.0"], /expected a key for the address 0.0.0.0/],
    [["--quantize", "nothing"], /expected quantize/],
  ])("the argument %j is rejected", async (words, message) => {
    const child = start("serve", model, "--port", "0", ...words);
    expect(await child.exited).toBe(1);
    expect(await new Response(child.stderr).text()).toMatch(message);
  });
});

describe("orchard chat answers lines", () => {
  test("orchard chat answers each line of a pipe, remembers the conversation, and saves it", async () => {
    const file = join(folder, "saved.jsonl");
    const child = start("chat", model, "--temperature", "0", "--tokens", "12");
    child.stdin.write(`the in\nand st\n/save ${file}\n/reset\nthe in\n/nothing\n`);
    child.stdin.end();
    const [first, second] = [await answerAlone("the in"), await answerAlone("the in", "and st")];
    expect(await new Response(child.stdout).text()).toBe(`${first}\n${second}\n${first}\n`);
    expect(await new Response(child.stderr).text()).toMatch(/^saved 4 messages to .*\nunknown command \/nothing/);
    expect(await child.exited).toBe(1);
    const { messages } = JSON.parse(await Bun.file(file).text());
    expect(messages.map(({ role, content }: Record<string, string>) => [role, content])).toEqual([
      ["user", "the in"],
      ["assistant", first],
      ["user", "and st"],
      ["assistant", second],
    ]);
  });

  test("in a terminal an interrupt ends the answer, not the chat", async () => {
    using session = new ChatSession(await loadServed(model), { temperature: 0, maxTokens: 200 });
    const [input, output, notes] = [new PassThrough(), new PassThrough(), new PassThrough()];
    const written: string[] = [];
    let interrupted = false;
    output.on("data", (piece) => written.push(String(piece)));
    const say = session.say.bind(session);
    session.say = async function* (content, signal) {
      for await (const piece of say(content, signal)) {
        yield piece;
        if (interrupted || content === "again") continue;
        interrupted = true;
        input.write("\x03"); // what a terminal sends for Ctrl-C
      }
    };
    const done = runChatLoop(session, { input, output, notes, columns: 80 });
    input.write("the in\r");
    await waitFor("the interrupted answer", () => session.messages.length === 2, { state: () => written.join("") });
    expect(interrupted).toBe(true);
    expect(session.pace.tokens).toBeLessThan(200);
    input.write("/exit\r");
    expect(await done).toBe(0);
    expect(String(notes.read())).toMatch(/^\[interrupted; \d+ tokens?, .* tokens\/s\]\n$/);
  });

  test("orchard chat breaks lines between words, at the terminal's width", () => {
    const wrap = new WordWrap(10);
    const pieces = ["one t", "wo three", " 四五六七八 longer-than-a-line x\ny", " z"];
    const text = pieces.map((piece) => wrap.push(piece)).join("") + wrap.end();
    expect(text.split("\n").slice(0, 3)).toEqual(["one two ", "three ", "四五六七八"]);
    expect(text.replaceAll(/\s/g, "")).toBe(pieces.join("").replaceAll(/\s/g, ""));
    const plain = new WordWrap(Number.POSITIVE_INFINITY);
    expect(pieces.map((piece) => plain.push(piece)).join("") + plain.end()).toBe(pieces.join(""));
  });
});
