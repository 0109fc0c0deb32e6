/**
 * Sends drawn hostile requests to a server in another process, one kind after the other, while a thread asks for
 * `/health` at a steady pace: `bun bench/health.ts [requests] [seed]`. For each kind it prints percentiles in
 * milliseconds:
 *
 * - of the latency of `/health`, and of the delay of a timer in the thread that asks, which is the machine's part;
 * - of the processor time that the server's main thread took without a pause, while it answered no other request.
 */
import { connect } from "node:net";
import { join } from "node:path";
import { inParallel } from "../scripts/parallel.ts";
import { packageRoot } from "../src/core/paths.ts";
import { type DrawnRequest, RequestSource } from "../test/serve/drawn_requests.ts";
import type { Turns } from "../test/serve/turns.ts";
import type { Polled } from "./support/health_poll.ts";

const [requests, seed] = [Number(process.argv[2] ?? 2000), Number(process.argv[3] ?? 1)];
const CLIENTS = 8;

/** Sends a request and reads the whole response; after a damaged request, waits at most half a second. */
const send = (port: number, { bytes, isComplete }: DrawnRequest): Promise<void> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(bytes));
    if (!isComplete) socket.setTimeout(500, () => socket.destroy());
    socket.on("data", () => undefined);
    socket.on("error", () => undefined);
    socket.on("close", () => resolve());
  });

let resolveTurns: (turns: Turns) => void = () => undefined;
const child = Bun.spawn([process.execPath, "test/serve/drawn_server.ts"], {
  ...({ stdin: "ignore", stdout: "pipe", stderr: "inherit", cwd: packageRoot } as const),
  ipc: (turns: Turns) => resolveTurns(turns),
});
const { value } = await child.stdout.getReader().read();
const url = new TextDecoder().decode(value).trim();
const worker = new Worker(join(import.meta.dir, "support", "health_poll.ts"));

const askTurns = (): Promise<Turns> =>
  new Promise((resolve) => {
    resolveTurns = resolve;
    child.send("turns");
  });
const askPolled = (message: string): Promise<Polled> =>
  new Promise((resolve) => {
    worker.onmessage = ({ data }: MessageEvent<Polled>) => resolve(data);
    worker.postMessage(message);
  });

const percentiles = (values: readonly number[]): string => {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share: number) => (sorted[Math.floor(share * (sorted.length - 1))] ?? 0).toFixed(1).padStart(7);
  return `${at(0.5)} ${at(0.99)} ${at(1)}`;
};

async function report(kind: string, count: number): Promise<void> {
  const [{ answers, delays }, { busy }] = await Promise.all([askPolled(""), askTurns()]);
  const cells = [answers, delays, busy].map(percentiles).join(" |");
  console.log(`${kind.padEnd(15)} ${String(count).padStart(6)} |${cells}`);
}

const source = new RequestSource(seed);
const drawn = Array.from({ length: requests }, () => source.next());
await askPolled(join(url, "health"));
await askTurns();
await Bun.sleep(2000);
const headers = ["/health", "a timer", "main thread"].map((title) => title.padEnd(23)).join(" | ");
console.log(`${"kind".padEnd(15)} number | ${headers}`);
console.log(`${" ".repeat(23)}${"|  median    99 %  longest".repeat(3).replaceAll("  longest", " longest ")}`);
await report("idle", 0);
for (const [kind, list] of Map.groupBy(drawn, (request) => request.kind)) {
  await inParallel(list.values(), (request) => send(Number(new URL(url).port), request), CLIENTS);
  await report(kind, list.length);
}
worker.terminate();
child.kill();
