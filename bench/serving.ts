/**
 * Sends requests to a server of a tiny random model, and prints the memory after every tenth of them: `bun
 * bench/serving.ts 10000`. The model is small, so that the server dominates.
 */
import { data, Generator, memory, nn, setBackend } from "../src/index.ts";
import { ModelServer } from "../src/serve/server.ts";

const requests = Number(process.argv[2] ?? 10_000);
const CLIENTS = 16;

setBackend("cpu");
const sizes = { vocabularySize: 256, contextLength: 256, layers: 1, heads: 2, width: 16 } as const;
const model = new nn.Llama({ ...sizes, generator: new Generator(1) });
const server = await ModelServer.start({ name: "tiny", model, tokenizer: new data.ByteTokenizer() }, { port: 0 });

/** Every fourth client disconnects during a stream. */
async function ask(at: number): Promise<void> {
  const body = JSON.stringify({ model: "tiny", prompt: `question ${at}`, max_tokens: 8, stream: at % 2 === 0 });
  const headers = { "Content-Type": "application/json" };
  const response = await fetch(`${server.url}/v1/completions`, { method: "POST", body, headers });
  if (at % 4 === 0) await response.body?.getReader().cancel();
  else await response.text();
}

const figures = (done: number, seconds: number): string => {
  Bun.gc(true);
  const mebibytes = (bytes: number) => `${(bytes / 2 ** 20).toFixed(1)} MiB`;
  const resident = mebibytes(process.memoryUsage.rss());
  const tensors = mebibytes(memory().host.liveBytes);
  return `${done} requests, ${(done / seconds).toFixed(0)}/s: ${resident} resident, ${tensors} of tensors`;
};

const start = performance.now();
const part = Math.ceil(requests / 10);
for (let done = 0; done < requests; done += part) {
  let next = done;
  const end = Math.min(done + part, requests);
  const client = async () => {
    while (next < end) await ask(next++);
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  console.log(figures(end, (performance.now() - start) / 1000));
}
await server.close();
