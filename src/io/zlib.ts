/** Loads `node:zlib` on first use: it would take a fifth of the time to import the library. */
export const zlib = () => require("node:zlib") as typeof import("node:zlib");
