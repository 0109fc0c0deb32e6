/** For every operator, a string attribute with an unknown word is an error that names the word. */
import { expect, test } from "bun:test";
import { withBackend } from "../../src/backend/policy.ts";
import { io } from "../../src/index.ts";
import { readNodeCases } from "./cases.ts";

/** The tag of field 4, an attribute's string. The length of the string follows the tag. */
const TEXT = 0x22;
const word = /^[A-Za-z_]{3,40}$/;

/** Yields the words in a file's attributes. May also yield other strings. */
function* wordsIn(bytes: Uint8Array): Generator<{ readonly at: number; readonly length: number }> {
  for (let at = 2; at < bytes.length; at++) {
    if (bytes[at - 2] !== TEXT) continue;
    const length = bytes[at - 1];
    const text = Buffer.from(bytes.subarray(at, at + length)).toString("latin1");
    if (text.length === length && word.test(text)) yield { at, length };
  }
}

type Case = ReturnType<typeof readNodeCases>[number];

async function errorOf(bytes: Uint8Array, { sets }: Case): Promise<string> {
  try {
    const model = await io.loadOnnx(bytes);
    const inputs = sets[0].inputs.map((read, at) => [model.inputs[at].name, read()] as const);
    await withBackend("reference", () => model.run(Object.fromEntries(inputs)));
    return "none";
  } catch (error) {
    return (error as Error).message;
  }
}

test("the error for each replaced word of the standard's node tests names it", async () => {
  const accepted: string[] = [];
  const seen = new Set<string>();
  let count = 0;
  for (const each of readNodeCases())
    for (const { at, length } of wordsIn(each.model)) {
      const place = Buffer.from(each.model.subarray(Math.max(at - 40, 0), at + length)).toString("latin1");
      if (seen.has(place)) continue; // the same attribute of another case of the operator
      seen.add(place);
      const message = await errorOf(Uint8Array.from(each.model).fill("q".charCodeAt(0), at, at + length), each);
      if (/is not supported; docs|it is not an ONNX model/.test(message)) continue;
      count++;
      if (!message.includes("q".repeat(length))) accepted.push(`${each.name}: ${message}`);
    }
  expect(accepted).toEqual([]);
  expect(count).toBeGreaterThan(100);
}, 1_200_000);
