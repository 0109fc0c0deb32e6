/**
 * Sends drawn hostile requests to a server in another process, and meanwhile asks for `/health` at a steady pace: `bun
 * bench/health.ts [requests] [seed]`. Prints percentiles of its latency, which includes delays of this process.
 */
import { connect } from "node:net";
import { join } from "node:path";
import { inParallel } from "../scripts/parallel.ts";
import { packageRoot } from "../src/core/paths.ts";
import { type DrawnRequest, RequestSource } from "../test/serve/drawn_requests.ts";

const [requests, seed] = [Number(process.argv[2] ?? 2000), Number(process.argv[3] ?? 1)];
const CLIENTS = 8;
const PAUSE = 10; // milliseconds

/** Sends a request and reads the whole response; after a damaged request, waits at most half a second. */
const send = (port: number, { bytes, isComplete }: DrawnRequest): Promise<void> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(bytes));
    if (!isComplete) socket.setTimeout(500, () => socket.destroy());
    socket.on("data", () => undefined);
    socket.on("error", () => undefined);
    socket.on("close", () => resolve());
  });

const child = Bun.spawn([process.execPath, "test/serve/drawn_server.ts"], {
  ...({ stdin: "ignore", stdout: "pipe", stderr: "inherit", cwd: packageRoot } as const),
});
const { value } = await child.stdout.getReader().read();
const url = new TextDecoder().decode(value).trim();
const health = join(url, "health");

let isRunning = true;
async function latencies(): Promise<number[]> {
  const found: number[] = [];
  while (isRunning) {
    const start = performance.now();
    const response = await fetch(health);
    await response.text();
    if (response.status !== 200) throw new Error(`/health answered ${response.status}`);
    found.push(performance.now() - start);
    await Bun.sleep(PAUSE);
  }
  return found.sort((a, b) => a - b);
}

const measured = latencies();
const source = new RequestSource(seed);
await inParallel(Array(requests).keys(), () => send(Number(new URL(url).port), source.next()), CLIENTS);
isRunning = false;
const sorted = await measured;
child.kill();
const at = (share: number) => `${sorted[Math.floor(share * (sorted.length - 1))]?.toFixed(1)} ms`;
console.log(`${requests} hostile requests of seed ${seed}, ${sorted.length} times /health:`);
console.log(`median ${at(0.5)}, 99 % ${at(0.99)}, 99.9 % ${at(0.999)}, longest ${at(1)}`);
