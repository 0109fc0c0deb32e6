/** The operations, one line a file. */
export * from "./copy/cast.ts";
export * from "./copy/copy.ts";
export * from "./copy/inplace.ts";
export * from "./elementwise/binary.ts";
export * from "./elementwise/comparison.ts";
export * from "./elementwise/ternary.ts";
export * from "./elementwise/unary.ts";
