/** In the order of the native kernels: `Loss` of `native/cpu/loss/loss.h` and of `kernels/loss/loss.metal`. */
export const lossNames = ["squaredError", "binaryCrossEntropy", "weightedBinaryCrossEntropy"] as const;
export type LossName = (typeof lossNames)[number];
