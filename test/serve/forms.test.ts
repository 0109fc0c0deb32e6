/** Constrained answers: JSON by a schema, and calls of functions. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import OpenAI from "openai";
import { setBackend } from "../../src/index.ts";
import { ModelServer } from "../../src/serve/server.ts";
import { ToolCallFilter } from "../../src/serve/tool_calls.ts";
import { ChatTemplate } from "../../src/text/chat_template.ts";
import { repeats } from "../support/repeats.ts";
import { Scripted } from "./scripted.ts";
import { randomLlama, served, tokenizer } from "./served.ts";

const scripted = new Scripted();
const template = new ChatTemplate(
  "{% for t in tools %}{{ t.function.name }};{% endfor %}{% for m in messages %}{{ m.role }}:{{ m.content }}" +
    "{% if m.tool_calls %}{% for c in m.tool_calls %}{{ c.function.arguments.x }}{% endfor %}{% endif %}\n{% endfor %}",
);
let server: ModelServer;
let plain: ModelServer;
const clientOf = (of: ModelServer) => new OpenAI({ baseURL: `${of.url}/v1`, apiKey: "none", maxRetries: 0 });

beforeAll(async () => {
  setBackend("cpu");
  const own = { name: "scripted", model: scripted, tokenizer, template, stopTokens: [0] };
  server = await ModelServer.start(own, { port: 0 });
  plain = await ModelServer.start(served(randomLlama()), { port: 0 });
});
afterAll(() => Promise.all([server.close(0), plain.close(0)]));

describe("response_format constrains the answer", () => {
  const schema = { type: "object", properties: { n: { type: "integer", minimum: 0, maximum: 999 } }, required: ["n"] };
  const options = {
    model: "tiny/llama",
    messages: [{ role: "user", content: "Hi" } as const],
    max_tokens: 80,
    temperature: 1,
    response_format: { type: "json_schema", json_schema: { name: "a", schema } } as const,
  };

  test("a schema is enforced, also when streaming", async () => {
    for (let seed = 0; seed < 3; seed++) {
      const { choices } = await clientOf(plain).chat.completions.create({ ...options, seed });
      expect(choices[0].finish_reason).toBe("stop");
      const value = JSON.parse(choices[0].message.content!);
      expect(value).toEqual({ n: expect.any(Number) });
      const parts = await clientOf(plain).chat.completions.create({ ...options, seed, stream: true });
      const texts = (await Array.fromAsync(parts)).map((part) => part.choices[0]?.delta.content ?? "");
      expect(JSON.parse(texts.join(""))).toEqual(value);
    }
  });

  test("a schema that can't be enforced is reported as an invalid request", async () => {
    const format = { type: "json_schema", json_schema: { name: "a", schema: { allOf: [] } } } as const;
    const asked = clientOf(plain).chat.completions.create({ ...options, response_format: format });
    expect(await asked.catch((error: unknown) => error)).toMatchObject({ status: 400, code: "invalidSchema" });
  });
});

describe("tools can be called by the model", () => {
  const tools = ["add", "sub"].map((name) => ({ type: "function", function: { name, parameters: {} } }) as const);
  const ask = { model: "scripted", messages: [{ role: "user", content: "?" } as const], tools, max_tokens: 200 };
  const said =
    'Let me see.\n<tool_call>\n{"name": "add", "arguments": {"x": 1}}\n</tool_call>\n' +
    '<tool_call>{"name": "sub", "arguments": {}}</tool_call>';

  test("tools are called, in whole answers and in streams", async () => {
    scripted.says(said);
    const { choices } = await clientOf(server).chat.completions.create(ask);
    const { message, finish_reason } = choices[0];
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

  test("in an agent's round, the result of a call goes back to the model", async () => {
    scripted.says('{"name": "add", "parameters": {"x": 7}}');
    const { choices } = await clientOf(server).chat.completions.create(ask);
    const { message } = choices[0];
    expect(message.content).toBeNull();
    scripted.says("8");
    const result = { role: "tool", tool_call_id: message.tool_calls![0].id, content: "8" } as const;
    const messages = [...ask.messages, message, result];
    const answer = await clientOf(server).chat.completions.create({ ...ask, messages });
    expect(answer.choices[0].message.content).toBe("8");
    expect(answer.usage!.prompt_tokens).toBe("add;sub;user:?assistant:7tool:8".length);
  });

  const named = (name: string) => ({ type: "function", function: { name } }) as const;
  const digit = { type: "object", properties: { n: { type: "integer", minimum: 0, maximum: 9 } }, required: ["n"] };
  const exact = ["add", "sub"].map(
    (name) => ({ type: "function", function: { name, parameters: digit, strict: true } }) as const,
  );
  const random = { ...ask, model: "tiny/llama", tools: exact, max_tokens: 120, temperature: 1 };
  const callsIn = (message: OpenAI.ChatCompletionMessage) =>
    message.tool_calls!.map((call) => (call.type === "function" ? [call.function.name, call.function.arguments] : []));

  test.each(["tags", "json"])("a forced call is made, regardless of the model's output; form: %s", async (form) => {
    const source = `${template.source}${form === "tags" ? "{# <tool_call> #}" : ""}`;
    const own = { ...served(randomLlama()), template: new ChatTemplate(source), stopTokens: [0] };
    const forcing = await ModelServer.start(own, { port: 0 });
    try {
      const client = clientOf(forcing);
      const found = new Set<string>();
      for (let seed = 0; seed < 2; seed++) {
        const options = { ...random, seed, tool_choice: "required", parallel_tool_calls: false } as const;
        const { choices } = await client.chat.completions.create(options);
        const { message, finish_reason } = choices[0];
        expect([message.content, finish_reason, message.tool_calls?.length]).toEqual([null, "tool_calls", 1]);
        const [[name, written]] = callsIn(message) as [[string, string]];
        expect(JSON.parse(written)).toEqual({ n: expect.any(Number) });
        found.add(name);
        const parts = await Array.fromAsync(await client.chat.completions.create({ ...options, stream: true }));
        const streamed = parts.flatMap((part) => part.choices[0]?.delta.tool_calls ?? []);
        expect(streamed.map((call) => [call.index, call.function?.name, call.function?.arguments])).toEqual([
          [0, name, written],
        ]);
      }
      expect([...found].every((name) => ["add", "sub"].includes(name))).toBe(true);
      for (const name of ["add", "sub"]) {
        const allowed: OpenAI.ChatCompletionAllowedToolChoice = {
          type: "allowed_tools",
          allowed_tools: { mode: "required", tools: [named(name)] },
        };
        for (const tool_choice of [named(name), allowed]) {
          const { choices } = await client.chat.completions.create({ ...random, seed: 1, tool_choice });
          for (const [called] of callsIn(choices[0].message)) expect(called).toBe(name);
        }
      }
    } finally {
      await forcing.close(0);
    }
  });

  const call = (name: string, x: string) => `<tool_call>\n{"name": "${name}", "arguments": {"n": ${x}}}\n</tool_call>`;

  test("several calls are returned, or at most one without parallel calls", async () => {
    const own = { name: "scripted", model: scripted, tokenizer, stopTokens: [0] };
    const tagged = await ModelServer.start(
      { ...own, template: new ChatTemplate(`${template.source}{# <tool_call> #}`) },
      { port: 0 },
    );
    try {
      const count = async (options: object) => {
        scripted.says(`${call("add", "1")}\n${call("sub", "2")}`);
        const body = { ...ask, tools: exact, temperature: 0, ...options };
        return callsIn((await clientOf(tagged).chat.completions.create(body)).choices[0].message);
      };
      const [one, two] = [
        ["add", '{"n":1}'],
        ["sub", '{"n":2}'],
      ] as const;
      const both = { type: "allowed_tools", allowed_tools: { mode: "required", tools: [named("add"), named("sub")] } };
      for (const tool_choice of ["required", both]) {
        expect(await count({ tool_choice })).toEqual([[...one]]);
        expect(await count({ tool_choice, parallel_tool_calls: true })).toEqual([[...one], [...two]]);
        expect(await count({ tool_choice, parallel_tool_calls: false })).toEqual([[...one]]);
      }
      for (const parallel_tool_calls of [true, false, undefined])
        expect(await count({ tool_choice: named("add"), parallel_tool_calls })).toEqual([[...one]]);
      expect(await count({ tool_choice: "auto" })).toEqual([[...one], [...two]]);
      expect(await count({ tool_choice: "auto", parallel_tool_calls: false })).toEqual([[...one]]);
      // The schema of a strict function's arguments is enforced, even in the middle of a text.
      scripted.says(`Yes: ${call("add", "?7")}`);
      const { choices } = await clientOf(tagged).chat.completions.create({ ...ask, tools: exact, temperature: 0 });
      expect(choices[0].message.content).toBe("Yes: ");
      expect(callsIn(choices[0].message)).toEqual([["add", '{"n":7}']]);
    } finally {
      await tagged.close(0);
    }
  });

  test("complete calls are returned, wherever the answer is cut", async () => {
    const name = fc.constantFrom("add", "sub", "other");
    const value = fc.string({
      unit: fc.constantFrom("a", '"', "\\", "\n", "</tool_call>", "<tool_call>"),
      maxLength: 4,
    });
    await fc.assert(
      fc.property(
        fc.array(fc.tuple(name, value), { minLength: 1, maxLength: 4 }),
        fc.nat(),
        fc.nat(),
        (said, cut, size) => {
          const written = said.map(
            ([own, s]) => `<tool_call>\n${JSON.stringify({ name: own, arguments: { s } })}\n</tool_call>`,
          );
          const whole = written.join("\n");
          const text = whole.slice(0, whole.length - (cut % (whole.length + 1)));
          const filter = new ToolCallFilter(new Set(["add", "sub"]));
          let before = "";
          for (let at = 0; at < text.length; at += 1 + (size % 7))
            before += filter.push(text.slice(at, at + 1 + (size % 7)));
          const { text: rest, calls } = filter.end();
          // A call is complete with its last brace, even if its closing tag is cut off.
          const ends = written.map((_, at) => written.slice(0, at + 1).join("\n").length - "\n</tool_call>".length);
          const finished = said.filter(([own], at) => ends[at] <= text.length && own !== "other");
          expect(calls.map((call) => [call.function.name, call.function.arguments])).toEqual(
            finished.map(([own, s]) => [own, JSON.stringify({ s })]),
          );
          const isAllCalls = finished.length === said.length;
          if (calls.length > 0 && isAllCalls && text.length === whole.length) expect(before + rest).toBe("");
          if (calls.length === 0) expect(before + rest).toBe(text);
          // A call that is begun but not completed remains text.
          const begun = said.findIndex((_, at) => ends[at] > text.length);
          const start = begun > 0 ? written.slice(0, begun).join("\n").length + 1 : 0;
          if (begun >= 0) expect((before + rest).trim()).toEndWith(text.slice(start).trim());
        },
      ),
      { numRuns: repeats({ usual: 300, all: 5000 }), seed: 34 },
    );
  });

  const json = { type: "json_object" } as const;
  const loose = { type: "function", function: { name: "f", parameters: { allOf: [] } } } as const;
  test.each([
    [{ tool_choice: "required", tools: undefined }, "tool_choice"],
    [{ tool_choice: named("mul") }, "tool_choice"],
    [{ tool_choice: "required", response_format: json }, "tool_choice"],
    [{ tool_choice: "maybe" }, "tool_choice"],
    [{ tool_choice: "required", tools: [loose] }, "tools"],
    [{ tools: [{ type: "custom", custom: { name: "f" } }] }, "tools.0.type"],
    [{ tools: [{ type: "function", function: { name: "a b" } }] }, "tools.0.function.name"],
    [{ response_format: { ...json, other: 1 }, nothing: 1 }, "nothing"],
  ])("the error for %j names it", async (options, param) => {
    const asked = clientOf(server).chat.completions.create({ ...ask, tools: exact, ...options } as never);
    expect(await asked.catch((error: unknown) => error)).toMatchObject({ status: 400, param });
  });

  test.each([
    "{not JSON",
    '{"name": "other", "parameters": {}}',
    '<tool_call>{"name": 3}</tool_call>',
    "a <tool_ca",
    "<tool_call>",
    " 1 < 2 { }",
  ])("%j is returned as text", (text) => {
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
