/** The operations of the elementwise kernels, in the order of `kernels/elementwise/codes.h`: an operation's code is its place. */

export const unaryNames = ["neg", "exp"] as const;
export type UnaryName = (typeof unaryNames)[number];

export const binaryNames = ["add", "sub", "mul", "div"] as const;
export type BinaryName = (typeof binaryNames)[number];
