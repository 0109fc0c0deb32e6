/** Files of chats: errors in a line, and their position. */
import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { DataError } from "../../../src/index.ts";
import { readChats } from "../../../src/train/tuning/chats.ts";
import { testFolder } from "../../support/folder.ts";

const folder = testFolder("chats");
const path = folder.file("chats.jsonl");
const good = '{"text": "a"}\n\n';

const message = (own: string) => `{"messages": [{"role": "user", "content": "a"}, ${own}]}`;

test.each<[string, string]>([
  ["{", "expected JSON: "],
  ["[]", "expected a JSON object, got []"],
  ["{}", "expected messages, prompt and completion, or text, got nothing"],
  ['{"texts": 1, "other": 2}', "expected messages, prompt and completion, or text, got texts, other"],
  ['{"text": "a", "text": "b"}', "expected JSON: the key"],
  ['{"messages": []}', "expected messages to be a list of messages, got []"],
  ['{"messages": {"0": 1}}', "expected messages to be a list of messages"],
  [message("3"), "expected messages[1] to be an object with a role, got 3"],
  [message('{"content": "a"}'), "expected messages[1].role to be a string, got undefined"],
  [message('{"role": "assistant"}'), "expected messages[1].content to be a string, got undefined"],
  [message('{"role": "assistant", "content": 3}'), "expected messages[1].content to be a string, got 3"],
  [message('{"role": "assistant", "content": "b", "weight": 2}'), "expected messages[1].weight to be 0 or 1, got 2"],
  [message('{"role": "assistant", "content": "b", "weight": 0}'), "expected an assistant message to train on"],
  [message('{"role": "user", "content": "b"}'), "expected an assistant message to train on"],
  [message('{"role": "assistant", "content": "b"}').replace("]}", '], "tools": 3}'), "expected tools to be a list"],
  ['{"prompt": "a"}', "expected completion to be a string, or both to be lists of messages, got undefined"],
  ['{"prompt": "a", "completion": ""}', "expected completion to be a non-empty string"],
  [`{"text": ${"[".repeat(200)}`, "expected JSON: nested more than 128 deep"],
])("the invalid chat line %p is an error", (line, problem) => {
  writeFileSync(path, `${good}${line}\n`);
  expect(() => readChats([path])).toThrow(DataError);
  expect(() => readChats([path])).toThrow(`${path}:3: ${problem}`);
});

test("invalid UTF-8, files without a line and a missing file are errors", () => {
  writeFileSync(path, Buffer.concat([Buffer.from(good), Buffer.from([0x22, 0xff])]));
  expect(() => readChats([path])).toThrow(`${path}:3: expected UTF-8`);
  writeFileSync(path, "\n \r\n");
  expect(() => readChats([path])).toThrow(`expected a line of JSON in ${path}, got none`);
  expect(() => readChats([folder.file("none.jsonl")])).toThrow("none.jsonl");
});

test("lines of several files are read, with a byte order mark and Windows' line ends", () => {
  writeFileSync(path, `\uFEFF{"text": "a"}\r\n\r\n{"prompt": "b", "completion": "c"}`);
  const other = folder.file("d.jsonl");
  writeFileSync(other, message('{"role": "assistant", "content": [{"type": "text", "text": "e"}]}'));
  const found = readChats([folder.path]);
  expect(found.map(({ kind, where }) => [kind, where])).toEqual([
    ["text", `${path}:1`],
    ["completion", `${path}:3`],
    ["chat", `${other}:1`],
  ]);
});
