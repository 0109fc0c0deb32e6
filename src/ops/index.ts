export * from "./copy/cast.ts";
export { clone, contiguous } from "./copy/copy.ts";
export * from "./creation/tensor.ts";
export * from "./elementwise/binary.ts";
export * from "./elementwise/unary.ts";
export * from "./reduction/sum.ts";
export * from "./reduction/sum_to.ts";
export * from "./view/expand.ts";
export * from "./view/reshape.ts";
