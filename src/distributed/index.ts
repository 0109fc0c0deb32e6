/** Training on several processes and machines, over MPI. Exported as `distributed`. */
export {
  type AllReduceOptions,
  allGather,
  allGatherAsync,
  allReduce,
  allReduceAsync,
  allToAll,
  allToAllAsync,
  type BroadcastArguments,
  type BroadcastOptions,
  barrier,
  barrierAsync,
  broadcast,
  broadcastAsync,
  type ReduceOptions,
  reduceScatter,
  reduceScatterAsync,
} from "./collectives.ts";
export { DataParallel, type DataParallelOptions, dataParallel, type ParallelModel } from "./data_parallel.ts";
export { DistributedError } from "./errors.ts";
export {
  type ReceiveOptions,
  receive,
  receiveAsync,
  type SendOptions,
  send,
  sendAsync,
} from "./point.ts";
export type { ReduceOp } from "./reduce.ts";
export {
  finalize,
  type InitOptions,
  init,
  isInitialized,
  localRank,
  rank,
  type WorldInfo,
  worldSize,
} from "./world.ts";

import "../ops/methods.ts";
