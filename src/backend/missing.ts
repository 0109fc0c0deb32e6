/** Reasons that several primitives give for the backends that do not implement them. */

/** Why other backends lack a kernel for primitives that fuse several operations in one native call. */
export const onlyCpuFuses = {
  missing: "only cpu has a fused kernel; other backends compose it of other operations",
} as const;
