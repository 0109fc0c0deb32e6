export * from "./matmul/addmm.ts";
export * from "./matmul/dot.ts";
export * from "./matmul/einsum.ts";
export * from "./matmul/matmul.ts";
export * from "./matmul/outer.ts";
