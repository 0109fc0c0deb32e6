/**
 * Sends random hostile requests to a server in another process. The server answers each complete request with 200 or a
 * client error in the API's format. It neither exits nor prints a stack trace.
 */
import { expect, test } from "bun:test";
import { connect } from "node:net";
import { join } from "node:path";
import { inParallel } from "../../scripts/parallel.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { bunWords } from "../support/program.ts";
import { repeats } from "../support/repeats.ts";
import { seed } from "../support/some.ts";
import { within } from "../support/wait.ts";
import { type DrawnRequest, RequestSource } from "./drawn_requests.ts";

const COUNT = repeats({ usual: 400, all: 20_000 });

/** Sends a request, and reads until the server closes; after a damaged request, only until the response's head. */
const answerTo = (port: number, { bytes, isComplete }: DrawnRequest): Promise<string> =>
  new Promise((resolve) => {
    let text = "";
    const socket = connect(port, "127.0.0.1", () => socket.write(bytes));
    socket.on("data", (part) => {
      text += part;
      if (!isComplete && text.includes("\r\n\r\n")) socket.destroy();
    });
    if (!isComplete) socket.setTimeout(500, () => socket.destroy()); // the server may wait for the rest
    socket.on("error", () => undefined);
    socket.on("close", () => resolve(text));
  });

const traces = /\bat \S+ \(|\.ts:\d+|TypeError|RangeError|is not a function/;
/** Bun's response to unsupported HTTP versions. */
const NO_SUCH_VERSION = 505;

function problemOf({ isComplete }: DrawnRequest, answer: string): string | undefined {
  const status = Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1] ?? 0);
  if (status >= 500 && status !== NO_SUCH_VERSION) return "5xx";
  if (traces.test(answer)) return "a stack trace";
  if (!isComplete) return undefined;
  if (status === 200) return undefined;
  if (status < 400) return "no answer";
  const { error } = JSON.parse(answer.slice(answer.indexOf("\r\n\r\n"))) as { error?: { message?: unknown } };
  return typeof error?.message === "string" ? undefined : "an error in another form";
}

test(`${COUNT} requests that seed ${seed} draws are answered`, async () => {
  const child = Bun.spawn([...bunWords, "test/serve/drawn_server.ts"], {
    ...({ stdin: "ignore", stdout: "pipe", stderr: "pipe", cwd: packageRoot } as const),
  });
  const errors = new Response(child.stderr).text();
  try {
    const { value } = await within("the server", child.stdout.getReader().read());
    const url = new TextDecoder().decode(value).trim();
    const source = new RequestSource(seed);
    const kinds = new Set<string>();
    await inParallel(
      Array(COUNT).keys(),
      async (index) => {
        const request = source.next();
        const answer = await within(`the answer to request ${index}`, answerTo(Number(new URL(url).port), request));
        const shown = request.bytes.toString("latin1").slice(0, 1000);
        expect([problemOf(request, answer), index, shown]).toEqual([undefined, index, shown]);
        kinds.add(`${request.kind} ${answer.slice(9, 12)}`);
      },
      8,
    );
    const health = await fetch(join(url, "health"));
    expect([health.status, await health.json()]).toEqual([200, { status: "ok" }]);
    for (const kind of ["damaged values", "schema", "pattern", "size"])
      expect([...kinds]).toEqual(expect.arrayContaining([`${kind} 200`, `${kind} 400`]));
  } finally {
    child.kill();
  }
  expect(await errors).toBe("");
}, 1_800_000);
