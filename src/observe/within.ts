import { ContextVariable } from "../core/context.ts";

/** Prefix of operation names in messages and records, such as `"backward of exp: "`. */
export const within = new ContextVariable("");
