import type { Missing } from "../../backend/backend.ts";

export const lstsqMetal: Missing = { missing: "columns are pivoted one by one, which a processor is faster at" };
