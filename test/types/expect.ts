/** Whether two types are the same, not only assignable to each other; `any` equals only itself. */
export type Equals<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

export type IsAny<T> = 0 extends 1 & T ? true : false;

/** A type that compiles only with the argument `true`. */
export type True<T extends true> = T;
