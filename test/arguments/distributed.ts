/** Distributed functions, each with valid arguments for a world of one process. */
import { distributed as d, nn, ones, optim } from "../../src/index.ts";
import type { Call, Calls } from "./upper.ts";

const call = (own: unknown): Call => own as Call;
const reducing = () => [ones([2]), { op: "sum", inPlace: true }] as const;
await d.init();
const parallel = d.dataParallel(new nn.ReLU());
const other = { dst: 1, tag: 0 } as const;
const from = { src: 1, dtype: "float32", tag: 0 } as const;

export const distributedCalls: Calls = {
  "distributed.init": [call(d.init), () => [{ check: true, timeout: 10, heartbeat: 5 }]],
  "distributed.rank": [call(d.rank), () => []],
  "distributed.worldSize": [call(d.worldSize), () => []],
  "distributed.localRank": [call(d.localRank), () => []],
  "distributed.isInitialized": [call(d.isInitialized), () => []],
  allReduce: [call(d.allReduce), reducing],
  allReduceAsync: [call(d.allReduceAsync), reducing],
  reduceScatter: [call(d.reduceScatter), () => [ones([2]), { op: "sum" }]],
  reduceScatterAsync: [call(d.reduceScatterAsync), () => [ones([2]), { op: "sum" }]],
  allGather: [call(d.allGather), () => [ones([2])]],
  allGatherAsync: [call(d.allGatherAsync), () => [ones([2])]],
  allToAll: [call(d.allToAll), () => [ones([2])]],
  allToAllAsync: [call(d.allToAllAsync), () => [ones([2])]],
  broadcast: [call(d.broadcast), () => [ones([2]), { src: 0, inPlace: true }]],
  broadcastAsync: [call(d.broadcastAsync), () => [ones([2]), { src: 0, inPlace: true }]],
  barrier: [call(d.barrier), () => []],
  barrierAsync: [call(d.barrierAsync), () => []],
  send: [call(d.send), () => [ones([2]), other]],
  sendAsync: [call(d.sendAsync), () => [ones([2]), other]],
  receive: [call(d.receive), () => [[2], from]],
  receiveAsync: [call(d.receiveAsync), () => [[2], from]],
  dataParallel: [call(d.dataParallel), () => [new nn.ReLU(), { bucketBytes: 100 }]],
  "DataParallel.noSync": [call((body: () => unknown) => parallel.noSync(body)), () => [() => 1]],
  "optim.sharded": [call(optim.sharded), () => [new optim.SGD([ones([2], { requiresGrad: true })])]],
  "distributed.finalize": [call(d.finalize), () => []],
};
