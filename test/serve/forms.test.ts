/** Answers in a form: JSON by a schema, and calls of functions. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { nn, setBackend, type Tensor, tensor } from "../../src/index.ts";
import { ModelServer } from "../../src/serve/server.ts";
import { ToolCallFilter } from "../../src/serve/tool_calls.ts";
import { ChatTemplate } from "../../src/text/chat_template.ts";
import { randomLlama, served, tokenizer } from "./served.ts";

/** Says a text, whatever it is asked; then only zeros. */
class Scripted extends nn.Llama {
  script = new Uint8Array();
  private said = 0;

  says(text: string): void {
    this.script = new TextEncoder().encode(text);
    this.said = 0;
  }

  override forward(tokens: Tensor, inputs?: nn.LanguageModelInputs): Tensor {
    super.forward(tokens, inputs).dispose();
    const next = this.script[this.said++] ?? 0;
    return tensor([[Array.from({ length: 256 }, (_, token) => (token === next ? 50 : 0))]], { dtype: "float32" });
  }
}

const sizes = { vocabularySize: 256, contextLength: 512, layers: 1, heads: 1, width: 8 };
const scripted = new Scripted(sizes);
const template = new ChatTemplate(
  "{% for t in tools %}{{ t.function.name }};{% endfor %}{% for m in messages %}{{ m.role }}:{{ m.content }}" +
    "{% if m.tool_calls %}{% for c in m.tool_calls %}{{ c.function.arguments.x }}{% endfor %}{% endif %}\n{% endfor %}",
);
let server: ModelServer;
let plain: ModelServer;
const clientOf = (of: ModelServer) => new OpenAI({ baseURL: `${of.url}/v1`, apiKey: "none", maxRetries: 0 });

beforeAll(() => {
  setBackend("cpu");
  const own = { name: "scripted", model: scripted, tokenizer, template, stopTokens: [0] };
  server = new ModelServer(own, { port: 0 });
  plain = new ModelServer(served(randomLlama()), { port: 0 });
});
afterAll(() => Promise.all([server.close(0), plain.close(0)]));

describe("response_format", () => {
  const schema = { type: "object", properties: { n: { type: "integer", minimum: 0, maximum: 999 } }, required: ["n"] };
  const options = {
    ...{ model: "tiny/llama", messages: [{ role: "user", content: "Hi" } as const], max_tokens: 80, temperature: 1 },
    response_format: { type: "json_schema", json_schema: { name: "a", schema } } as const,
  };

  test("a schema holds, streamed too", async () => {
    for (let seed = 0; seed < 3; seed++) {
      const { choices } = await clientOf(plain).chat.completions.create({ ...options, seed });
      expect(choices[0]!.finish_reason).toBe("stop");
      const value = JSON.parse(choices[0]!.message.content!);
      expect(value).toEqual({ n: expect.any(Number) });
      const parts = await clientOf(plain).chat.completions.create({ ...options, seed, stream: true });
      const texts = (await Array.fromAsync(parts)).map((part) => part.choices[0]?.delta.content ?? "");
      expect(JSON.parse(texts.join(""))).toEqual(value);
    }
  });

  test("a schema that can't be held to is the client's mistake", async () => {
    const format = { type: "json_schema", json_schema: { name: "a", schema: { allOf: [] } } } as const;
    const asked = clientOf(plain).chat.completions.create({ ...options, response_format: format });
    expect(await asked.catch((error: unknown) => error)).toMatchObject({ status: 400, code: "invalidSchema" });
  });
});

describe("tools", () => {
  const tools = ["add", "sub"].map((name) => ({ type: "function", function: { name, parameters: {} } }) as const);
  const ask = { model: "scripted", messages: [{ role: "user", content: "?" } as const], tools, max_tokens: 200 };
  const said =
    'Let me see.\n<tool_call>\n{"name": "add", "arguments": {"x": 1}}\n</tool_call>\n' +
    '<tool_call>{"name": "sub", "arguments": {}}</tool_call>';

  test("are called, in whole answers and in streams", async () => {
    scripted.says(said);
    const { choices } = await clientOf(server).chat.completions.create(ask);
    const { message, finish_reason } = choices[0]!;
    expect([message.content, finish_reason]).toEqual(["Let me see.\n", "tool_calls"]);
    const calls = message.tool_calls!.map((call) => call.type === "function" && call.function);
    expect(calls).toEqual([
      { name: "add", arguments: '{"x":1}' },
      { name: "sub", arguments: "{}" },
    ]);
    scripted.says(said);
    const parts = await Array.fromAsync(await clientOf(server).chat.completions.create({ ...ask, stream: true }));
    expect(parts.map((part) => part.choices[0]?.delta.content ?? "").join("")).toBe("Let me see.\n");
    const streamed = parts.flatMap((part) => part.choices[0]?.delta.tool_calls ?? []);
    expect(streamed.map((call) => [call.index, call.function])).toEqual(
      calls.map((call, at) => [at, call || undefined]),
    );
    expect(parts.map((part) => part.choices[0]?.finish_reason).filter(Boolean)).toEqual(["tool_calls"]);
  });

  test("an agent's round: the result of a call goes back to the model", async () => {
    scripted.says('{"name": "add", "parameters": {"x": 7}}');
    const { choices } = await clientOf(server).chat.completions.create(ask);
    const { message } = choices[0]!;
    expect(message.content).toBeNull();
    scripted.says("8");
    const result = { role: "tool", tool_call_id: message.tool_calls![0]!.id, content: "8" } as const;
    const messages = [...ask.messages, message, result];
    const answer = await clientOf(server).chat.completions.create({ ...ask, messages });
    expect(answer.choices[0]!.message.content).toBe("8");
    expect(answer.usage!.prompt_tokens).toBe("add;sub;user:?assistant:7tool:8".length);
  });

  test.each([
    "{not JSON",
    '{"name": "other", "parameters": {}}',
    '<tool_call>{"name": 3}</tool_call>',
    "a <tool_ca",
    "<tool_call>",
    " 1 < 2 { }",
  ])("%j is text", (text) => {
    for (const size of [1, 3, 100]) {
      const filter = new ToolCallFilter(new Set(["add"]));
      let found = "";
      for (let at = 0; at < text.length; at += size) found += filter.push(text.slice(at, at + size));
      expect(filter.end().calls).toEqual([]);
      const again = new ToolCallFilter(new Set(["add"]));
      expect(again.push(text) + again.end().text).toBe(text);
      expect(text.startsWith(found)).toBe(true);
    }
  });
});
