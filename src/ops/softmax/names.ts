/** In the order of the native kernels. Gradients are of the sum, from the gradient of the result and the result. */
export const softmaxNames = ["softmax", "logSoftmax", "softmaxGradient", "logSoftmaxGradient"] as const;
export type SoftmaxName = (typeof softmaxNames)[number];

export interface SoftmaxAttributes {
  readonly axis: number;
}
