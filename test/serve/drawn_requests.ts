/** Draws hostile requests: damaged HTTP, JSON, schemas, regular expressions and sizes. The same seed draws the same. */
import { Random } from "../ops/samples.ts";

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** A request, and whether the server must respond to it. */
export interface DrawnRequest {
  readonly kind: string;
  readonly bytes: Buffer;
  /** Whether the head is valid and the body complete, so that the server must answer. */
  readonly isComplete: boolean;
}

/** Draws requests of every kind. */
export class RequestSource {
  readonly #random: Random;

  constructor(seed: number) {
    this.#random = new Random(seed);
  }

  next(): DrawnRequest {
    const kinds = ["damaged values", "schema", "pattern", "size", "damaged text", "damaged HTTP", "deep"] as const;
    const kind = this.#one(kinds);
    const path = this.#one(Object.keys(valid)) as keyof typeof valid;
    if (kind === "schema") return this.#schema();
    if (kind === "pattern") return complete(kind, CHAT, chatWith(formatOf(this.#patternSchema())));
    if (kind === "size") return complete(kind, ...this.#sized());
    if (kind === "deep") return complete(kind, path, this.#deep(path));
    if (kind === "damaged values") return complete(kind, path, JSON.stringify(this.#damaged(valid[path])));
    if (kind === "damaged text") return complete(kind, path, this.#cut(JSON.stringify(valid[path])));
    return { kind, bytes: this.#damagedHttp(path), isComplete: false };
  }

  #int(least: number, most: number): number {
    return this.#random.integer(least, most);
  }

  #one<Value>(values: readonly Value[]): Value {
    return values[this.#int(0, values.length - 1)]!;
  }

  #some<Value>(least: number, most: number, draw: () => Value): Value[] {
    return Array.from({ length: this.#int(least, most) }, draw);
  }

  #text(most: number): string {
    return this.#some(0, most, () => this.#one(characters)).join("");
  }

  #value(depth = 0): Json {
    const kind = this.#int(0, depth > 3 ? 3 : 5);
    if (kind === 0) return this.#one(extremes);
    if (kind === 1) return this.#text(12);
    if (kind === 2) return this.#int(-3, 300);
    if (kind === 3) return this.#one([null, true, false]);
    if (kind === 4) return this.#some(0, 4, () => this.#value(depth + 1));
    return Object.fromEntries(this.#some(0, 4, () => [this.#one(names), this.#value(depth + 1)]));
  }

  /** Returns a copy with some parts replaced, removed, repeated or renamed. */
  #damaged(value: Json, rate = 12): Json {
    if (this.#int(1, rate) === 1) return this.#value();
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value))
      return value.flatMap((item) =>
        this.#int(1, 20) === 1 ? this.#some(0, 3, () => item) : [this.#damaged(item, rate)],
      );
    const entries = Object.entries(value).flatMap(([key, item]): [string, Json][] => {
      if (this.#int(1, 20) === 1) return [];
      return [[this.#int(1, 30) === 1 ? this.#one(names) : key, this.#damaged(item, rate)]];
    });
    if (this.#int(1, 8) === 1) entries.push([this.#one(names), this.#value()]);
    return Object.fromEntries(entries);
  }

  #cut(text: string): string {
    const [start, length] = [this.#int(0, text.length), this.#int(0, 12)];
    return text.slice(0, start) + this.#text(6) + text.slice(start + length);
  }

  #deep(path: keyof typeof valid): string {
    const levels = this.#one([60, 64, 65, 200, 255, 256, 257, 5000, 100_000]);
    const [open, close] = this.#one([
      ["[", "]"],
      ['{"a":', "}"],
      ['{"items":', "}"],
      ['[{"anyOf":', "}]"],
    ] as const);
    const deep = `${open.repeat(levels)}1${close.repeat(levels)}`;
    const field = this.#one(["metadata", "messages", "response_format", "tools", "prompt", "input", "text"]);
    return JSON.stringify({ ...(valid[path] as object), [field]: "@" }).replace('"@"', deep);
  }

  #schema(): DrawnRequest {
    const schema = this.#schemaOf(0);
    const name = this.#one(["f", "a-b", "toolong".repeat(10), ""]);
    const tool = { type: "function", function: { name, parameters: schema } };
    const isTool = this.#int(1, 3) === 1;
    return complete("schema", CHAT, chatWith(isTool ? { tools: [tool], tool_choice: "required" } : formatOf(schema)));
  }

  #schemaOf(depth: number): Json {
    const inner = () => (depth > 3 ? true : this.#schemaOf(depth + 1));
    const named = (most: number) => Object.fromEntries(this.#some(0, most, () => [this.#text(3), inner()]));
    const count = () => this.#one<Json>([0, 1, 2, 3, 40, 1000, 1e9, -1, 0.5, "a"]);
    const list = (least: number) => this.#some(least, 4, inner);
    const parts: Record<string, () => Json> = {
      type: () => this.#one<Json>(["object", "array", "string", "number", "integer", "boolean", "null", ["null"], 3]),
      properties: () => named(this.#int(1, 30) === 1 ? 300 : 4),
      required: () => this.#some(0, 3, () => this.#text(3)),
      additionalProperties: inner,
      patternProperties: () => Object.fromEntries(this.#some(0, 2, () => [this.#pattern(0), inner()])),
      propertyNames: inner,
      items: inner,
      prefixItems: () => list(0),
      contains: inner,
      minItems: count,
      maxItems: count,
      minLength: count,
      maxLength: count,
      minContains: count,
      minProperties: count,
      maxProperties: count,
      minimum: count,
      maximum: count,
      multipleOf: count,
      exclusiveMinimum: count,
      exclusiveMaximum: count,
      uniqueItems: () => true,
      pattern: () => this.#pattern(0),
      format: () => this.#one(["date-time", "email", "uuid", "uri", "ipv6", "regex", "hostname", "nothing"]),
      enum: () => this.#some(0, 5, () => this.#value()),
      const: () => this.#value(),
      anyOf: () => list(1),
      oneOf: () => list(1),
      allOf: () => list(1),
      not: inner,
      if: inner,
      else: inner,
      unevaluatedProperties: inner,
      dependentSchemas: () => named(2),
      $ref: () => this.#one(["#", "#/$defs/a", "#/properties/a", "http://localhost/", "#/$defs/~2", "%"]),
      $defs: () => ({ a: inner() }),
    };
    return Object.fromEntries(this.#some(1, 4, () => this.#one(Object.keys(parts))).map((key) => [key, parts[key]()]));
  }

  #patternSchema(): Json {
    return { type: "object", properties: { a: { type: "string", pattern: this.#pattern(0) } }, required: ["a"] };
  }

  #pattern(depth: number): string {
    const atom = (): string =>
      depth < 4 && this.#int(1, 3) === 1 ? this.#one(groups).replace("@", this.#pattern(depth + 1)) : this.#one(atoms);
    const term = () => atom() + (this.#int(1, 2) === 1 ? this.#one(repeats) : "");
    const own = this.#some(1, 4, term).join(this.#int(1, 5) === 1 ? "|" : "");
    return this.#int(1, 15) === 1 ? own.repeat(this.#int(2, 60)) : own;
  }

  #sized(): [string, string] {
    const length = this.#one([0, 1, 255, 256, 257, 4095, 4097, 65_537, 300_000, 4_200_000]);
    const some = Math.min(length, 60_000);
    const text = this.#one(["a", "é", "\u{1f600}", "\\", '"', "\0", "<assistant>"]).repeat(Math.ceil(length / 3));
    const tokens = Array.from({ length: some }, () => this.#one([0, 1, 255, 256, 4e9]));
    const bodies: [string, object][] = [
      [CHAT, { messages: [{ role: "user", content: text }] }],
      [CHAT, { messages: Array.from({ length: some }, () => ({ role: "user", content: "a" })) }],
      [CHAT, { stop: Array.from({ length: some }, (_, at) => `s${at}`) }],
      [CHAT, { stop: [text] }],
      [CHAT, { logit_bias: Object.fromEntries(tokens.map((token, at) => [at, token % 100])) }],
      [CHAT, formatOf({ type: "string", maxLength: length, minLength: some })],
      [CHAT, formatOf({ enum: Array.from({ length: some }, (_, at) => `value ${at}`) })],
      [CHAT, formatOf({ type: "array", items: { type: "integer" }, minItems: length })],
      [CHAT, formatOf({ anyOf: Array.from({ length: some }, (_, at) => ({ const: at })) })],
      [CHAT, formatOf({ description: text, type: "object" })],
      [
        CHAT,
        { tools: Array.from({ length: Math.min(some, 300) }, (_, at) => toolOf(`f${at}`)), tool_choice: "required" },
      ],
      ["/v1/completions", { prompt: text }],
      ["/v1/completions", { prompt: tokens }],
      ["/v1/completions", { prompt: Array.from({ length: some }, () => "a") }],
      ["/v1/completions", { n: length, max_tokens: length }],
      ["/v1/embeddings", { input: text }],
      ["/v1/embeddings", { input: Array.from({ length: some }, () => "a") }],
      ["/v1/embeddings", { input: Array.from({ length: some }, () => [1]) }],
      ["/v1/responses", { input: text }],
      ["/v1/responses", { instructions: text }],
    ];
    const [path, fields] = this.#one(bodies);
    const base = path === "/v1/embeddings" ? { model: MODEL, input: "a" } : (valid[path as "/v1/responses"] as object);
    return [path, JSON.stringify({ ...base, ...fields })];
  }

  #damagedHttp(path: string): Buffer {
    const body = Buffer.from(JSON.stringify(valid[path as keyof typeof valid]));
    const lines = [`${this.#one(methods)} ${this.#one([path, path, path, ...targets])} HTTP/${this.#one(versions)}`];
    if (this.#int(1, 8) > 1) lines.push(`Host: ${this.#one(hosts)}`);
    if (this.#int(1, 8) > 1) lines.push("Content-Type: application/json");
    const isChunked = this.#int(1, 4) === 1;
    if (isChunked) lines.push("Transfer-Encoding: chunked");
    if (!isChunked || this.#int(1, 8) === 1)
      lines.push(`Content-Length: ${this.#int(1, 4) > 1 ? body.length : this.#one(lengths)}`);
    lines.push(...this.#some(0, 3, () => this.#one(headers)));
    const chunks = isChunked ? `${this.#int(1, 3) > 1 ? body.length.toString(16) : this.#one(chunkSizes)}\r\n` : "";
    const end = isChunked ? this.#one(["\r\n0\r\n\r\n", "\r\n", "0", "\r\n0\r\nX: y\r\n\r\n"]) : "";
    const newline = this.#int(1, 15) === 1 ? "\n" : "\r\n";
    const head = Buffer.from(`${lines.join(newline)}${newline}${newline}${chunks}`, "latin1");
    const whole = Buffer.concat([head, body, Buffer.from(end)]);
    const damaged = this.#int(1, 2) === 1 ? this.#flipped(whole) : whole;
    return this.#int(1, 6) === 1 ? Buffer.concat([damaged, damaged]) : damaged;
  }

  #flipped(bytes: Buffer): Buffer {
    const copy = Buffer.from(bytes);
    for (let change = this.#int(1, 4); change > 0; change--) copy[this.#int(0, copy.length - 1)] = this.#int(0, 255);
    return this.#int(1, 3) === 1 ? copy.subarray(0, this.#int(1, copy.length)) : copy;
  }
}

const MODEL = "tiny/llama";
const CHAT = "/v1/chat/completions";
const toolOf = (name: string) => ({ type: "function", function: { name, parameters: { type: "object" } } });
const formatOf = (schema: Json) => ({ response_format: { type: "json_schema", json_schema: { name: "a", schema } } });
const chatWith = (fields: object): string => JSON.stringify({ ...(valid[CHAT] as object), ...fields });

function complete(kind: string, path: string, body: string): DrawnRequest {
  const bytes = Buffer.from(body);
  const head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n`;
  return {
    kind,
    bytes: Buffer.concat([Buffer.from(`${head}Content-Length: ${bytes.length}\r\n\r\n`), bytes]),
    isComplete: true,
  };
}

/** Valid requests, one for each endpoint. */
const valid = {
  [CHAT]: { model: MODEL, messages: [{ role: "user", content: "a" }], max_tokens: 2, temperature: 0.5, stop: ["z"] },
  "/v1/completions": { model: MODEL, prompt: ["a", "b"], max_tokens: 2, logprobs: 1, echo: true, seed: 3 },
  "/v1/responses": {
    model: MODEL,
    input: [{ role: "user", content: "a" }],
    max_output_tokens: 2,
    tool_choice: "auto",
    tools: [{ type: "function", ...toolOf("f").function }],
    text: { format: { type: "json_object" } },
  },
  "/v1/embeddings": { model: MODEL, input: ["a", "b"], encoding_format: "float", dimensions: 2 },
  "/v1/rerank": { model: MODEL, query: "a", documents: ["a", { text: "b" }], top_n: 1 },
} satisfies Record<string, Json>;

const names = [
  "model",
  "messages",
  "prompt",
  "input",
  "max_tokens",
  "n",
  "seed",
  "stop",
  "stream",
  "stream_options",
  "tools",
  "logprobs",
  "top_logprobs",
  "logit_bias",
  "tool_choice",
  "response_format",
  "echo",
  "content",
  "role",
  "text",
  "__proto__",
  "constructor",
  "toString",
  "",
  "length",
  "0",
  "type",
  "function",
  "schema",
  "include",
  "truncation",
];
const extremes: readonly Json[] = [
  -1,
  -0,
  0.5,
  1e308,
  -1e308,
  2 ** 31,
  2 ** 53,
  2 ** 64,
  5e-324,
  1e9,
  "\u0000",
  "\ud800",
  "<tool_call>",
  "{{ 1 }}",
  "9".repeat(400),
  "x".repeat(3000),
  [[]],
  [null],
  {},
  { type: "object" },
  "NaN",
  "Infinity",
];
const characters = [
  ..."ab01 _-.:{}[]()\"'\\/<>*+?^$|,&%#=",
  "\0",
  "\n",
  "é",
  "я",
  "一",
  "\u{1f600}",
  "\ud800",
  "\u202e",
];
const atoms = [
  "a",
  ".",
  "\\d",
  "\\w",
  "\\W",
  "\\s",
  "[a-z]",
  "[^a]",
  "[А-я]",
  "[^\\n]",
  "\\p{L}",
  "\\u{1f600}",
  "\\n",
  "[]",
  "[",

  "^",
  "$",
  "\\b",
  "\\1",
  "(?<n>a)",
  "\\k<n>",
  "\\x41",
  "\\c",
  "]",
  "}",
  "{2}",
  "一",
  "[\\u0000-\\u{10ffff}]",
  "(",
  ")",
];
const groups = ["(@)", "(?:@)", "(?=@)", "(?!@)", "(?<=@)", "(@|@)", "(?:@)?", "((@)*)*", "(@"];
const repeats = ["*", "+", "?", "*?", "{0,9}", "{3}", "{2,}", "{0,1000}", "{1000}", "{99999}", "{5,2}", "++", "{,3}"];
const methods = [
  ...Array.from({ length: 14 }, () => "POST"),
  "GET",
  "PUT",
  "HEAD",
  "OPTIONS",
  "CONNECT",
  "post",
  "TRACE",
  "",
  "P\0ST",
];
const versions = [...Array.from({ length: 24 }, () => "1.1"), "1.1", "1.0", "2.0", "0.9", "1.1x", ""];
const hosts = [
  "localhost",
  "localhost",
  "127.0.0.1:80@x",
  "[::1",
  "",
  "a b",
  "localhost:99999",
  "other.example",
  "\xff",
];
const targets = [
  "*",
  "//",
  "http://localhost/v1/models",
  "/%ff",
  "/%",
  "/v1/../..",
  "\0",
  "/?",
  `/${"a".repeat(20_000)}`,
];
const lengths = ["-1", "0", "1", "1e3", "0x10", "99999999999999999999", "4194305", "+5", "5, 6", ""];
const chunkSizes = ["-1", "ffffffffffffffff", "0", "1", "zz", "5;ext=1", "10000000000000000", ""];
const headers = [
  "Content-Length: 3",
  "Transfer-Encoding: gzip",
  "Transfer-Encoding: chunked, chunked",
  "Expect: 100-continue",

  "Connection: close",
  "Connection: upgrade",
  "Upgrade: websocket",
  "Upgrade: h2c",
  "Origin: null",
  "Host: localhost",
  "Sec-WebSocket-Key: AAAA",
  "Authorization: Bearer",
  "Content-Encoding: gzip",
  "Content-Type: text/plain",
  ": x",

  "a b: c",
  "X: \xff",
  " folded",
  `X: ${"x".repeat(20_000)}`,
  "Content-Type: multipart/form-data; boundary=a",
  "X:\0",
];
