/** Returns the ID of this thread: 0 for the main thread. Only workers load the module that provides thread IDs. */
export const threadId = (): number =>
  Bun.isMainThread ? 0 : (require("node:worker_threads") as typeof import("node:worker_threads")).threadId;
