/**
 * The process for constraints. XGrammar's automata are built and followed here, where CPU time can be limited and the
 * process ended: the cost of an untrusted constraint can't be predicted.
 *
 * A WebAssembly trap leaves XGrammar's memory in an inconsistent state, so the process ends after one. The program
 * starts another and sends it the state.
 */
import { writeFile } from "node:fs/promises";
import type { CompiledGrammar, GrammarCompiler, GrammarMatcher } from "@mlc-ai/web-xgrammar";
import { OrchardError } from "../../core/errors.ts";
import { byteCharacters } from "../../data/bpe_words.ts";
import type { Answer, Form, Refusal, Request, Task } from "./messages.ts";
import { limitProcessorTime } from "./processor_time.ts";

/** Maximum bytes of XGrammar's memory, which could otherwise grow to 2 GiB. */
const MOST_MEMORY = 2 ** 30;

const compilers = new Map<number, GrammarCompiler>();
const forms = new Map<number, CompiledGrammar>();
const texts = new Map<number, GrammarMatcher>();

/** XGrammar's error output, which would otherwise go to the terminal. */
const said: string[] = [];
console.log = console.warn = console.error = (...values: unknown[]) => void said.push(values.map(String).join(" "));

const { grow } = WebAssembly.Memory.prototype;
WebAssembly.Memory.prototype.grow = function limited(this: WebAssembly.Memory, pages: number) {
  if (this.buffer.byteLength + pages * 65_536 > MOST_MEMORY) throw new RangeError("the memory for constraints is full");
  return grow.call(this, pages);
};

const loaded = Promise.all([import("@mlc-ai/web-xgrammar"), import("./grammar.ts")]);

async function addVocabulary(id: number, bytes: Uint8Array, ends: Uint32Array): Promise<void> {
  // Each byte is written as GPT-2's character for it. Tokens without bytes are never allowed.
  const tokens = Array.from(ends, (end, token) =>
    Array.from(bytes.subarray(ends[token - 1] ?? 0, end), (byte) => byteCharacters[byte]).join(""),
  );
  const [{ GrammarCompiler, TokenizerInfo }] = await loaded;
  const [size, stop] = [tokens.length + 1, tokens.length]; // a token added to the vocabulary, which ends texts
  const info = await TokenizerInfo.createTokenizerInfo([...tokens, ""], "byte_level", false, size, [stop]);
  // Disables XGrammar's cache, which would keep every compiled constraint. The program caches instead.
  compilers.set(id, await GrammarCompiler.createGrammarCompiler(info, false));
}

async function addForm(id: number, vocabulary: number, form: Form): Promise<void> {
  const [, { compileForm }] = await loaded;
  forms.set(id, await compileForm(compilers.get(vocabulary)!, form));
}

async function start(id: number, of: number, tokens: readonly number[]): Promise<Int32Array> {
  const [{ GrammarMatcher }] = await loaded;
  const matcher = await GrammarMatcher.createGrammarMatcher(forms.get(of)!);
  for (const token of tokens) matcher.acceptToken(token);
  texts.set(id, matcher);
  return matcher.getNextTokenBitmask();
}

function accept(id: number, token: number): Promise<Int32Array> {
  const matcher = texts.get(id)!;
  matcher.acceptToken(token);
  return matcher.getNextTokenBitmask();
}

const forgetting = {
  vocabulary(id: number) {
    compilers.delete(id);
  },
  form(id: number) {
    forms.get(id)?.dispose();
    forms.delete(id);
  },
  text(id: number) {
    texts.get(id)?.dispose();
    texts.delete(id);
  },
} as const;

async function perform(task: Task): Promise<Int32Array | undefined> {
  switch (task.kind) {
    case "vocabulary":
      return void (await addVocabulary(task.id, task.bytes, task.ends));
    case "form":
      return void (await addForm(task.id, task.vocabulary, task.form));
    case "start":
      return start(task.id, task.of, task.tokens);
    case "accept":
      return accept(task.id, task.token);
    case "forget":
      return void forgetting[task.what](task.id);
  }
}

async function answerOf({ task, seconds }: Request): Promise<Answer> {
  const before = process.cpuUsage().user;
  try {
    limitProcessorTime(seconds);
    const mask = await perform(task);
    return { ...(mask && { mask }), seconds: (process.cpuUsage().user - before) / 1e6 };
  } catch (cause) {
    return { error: refusalOf(cause), seconds: 0 };
  } finally {
    limitProcessorTime(0);
    said.length = 0;
  }
}

function refusalOf(cause: unknown): Refusal {
  if (cause instanceof OrchardError)
    return { code: cause.code, message: cause.message.replace(/^\[[^\]]*\] /, ""), isLast: false };
  // RangeError: the stack overflowed, or memory ran out
  const isTrap = cause instanceof WebAssembly.RuntimeError || cause instanceof RangeError;
  if (!isTrap) throw cause;
  const reason = said.find((line) => line.startsWith("[FATAL]"))?.replace(/^\[FATAL\] \S+: /, "") ?? cause.message;
  return { code: "unsupported", message: `the constraint is not supported: ${reason}`, isLast: true };
}

let last: Promise<unknown> = loaded;
process.on("message", (request: Request) => {
  last = last.then(async () => {
    const answer = await answerOf(request);
    process.send!(answer);
    if (answer.error?.isLast) await new Promise<never>(() => process.disconnect!());
  });
});
process.on("disconnect", () => process.exit());
process.on("SIGINT", () => undefined); // the program handles the signal; when it ends, this process ends too
// If the system runs out of memory, this process is killed before its program.
if (process.platform === "linux") writeFile("/proc/self/oom_score_adj", "1000").catch(() => undefined);
