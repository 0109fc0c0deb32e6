// llama.cpp through the npm package node-llama-cpp of a folder, in a separate process. It answers each line of tokens,
// after which `count` more are to come, with the milliseconds of the prompt and of the others, those of all its
// processors, and the tokens.
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [folder, modelPath, threads] = process.argv.slice(2);
const module = pathToFileURL(join(folder, "node_modules", "node-llama-cpp", "dist", "index.js"));
const { getLlama } = await import(module.href);
const llama = await getLlama({ gpu: false, build: "never", logLevel: "error", progressLogs: false });
const model = await llama.loadModel({ modelPath, gpuLayers: 0 });
const context = await model.createContext({ contextSize: 1024, batchSize: 1024, threads: Number(threads) });
const sequence = context.getSequence();
const processor = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e3;
};
console.log("ready");
for await (const line of createInterface({ input: process.stdin })) {
  const { tokens, count } = JSON.parse(line);
  await sequence.clearHistory();
  const [begun, used] = [performance.now(), processor()];
  const found = [];
  let [first, usedFirst] = [0, 0];
  for await (const token of sequence.evaluate(tokens, { temperature: 0 })) {
    found.push(Number(token));
    if (found.length === 1) [first, usedFirst] = [performance.now(), processor()];
    if (found.length > count) break;
  }
  console.log(
    JSON.stringify({
      prompt: first - begun,
      rest: performance.now() - first,
      tokens: found.slice(0, count),
      processor: { prompt: usedFirst - used, rest: processor() - usedFirst },
    }),
  );
}
process.exit(0);
