/** The number of this thread: 0 for the program's own. The module that knows the others' is loaded by them alone. */
export const threadId = (): number =>
  Bun.isMainThread ? 0 : (require("node:worker_threads") as typeof import("node:worker_threads")).threadId;
