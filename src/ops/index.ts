/** The public operations. */
export * from "./reduction/extrema.ts";
export * from "./reduction/logic.ts";
export * from "./reduction/logsumexp.ts";
export * from "./reduction/mean.ts";
export * from "./reduction/norm.ts";
export * from "./reduction/prod.ts";
export * from "./reduction/sum.ts";
export * from "./reduction/variance.ts";
export * from "./scan/cumsum.ts";
export * from "./softmax/softmax.ts";
