/** Loads `node:zlib` on first use. Loading it at import would add a fifth to the import time of the library. */
export const zlib = () => require("node:zlib") as typeof import("node:zlib");
