/** Lets layers below `compile` compile functions: it registers itself when the package is loaded. */

/** A function as a program: see `compile`. */
export type Compiled<Arguments extends readonly unknown[], Result> = ((...values: Arguments) => Result) & {
  /** Frees the program. */
  reset(): void;
};

/**
 * Compiles a function.
 *
 * @param state the modules and caches that the function uses or changes in place
 * @param fuse whether operations are fused; default true
 */
type Compiler = <Arguments extends readonly unknown[], Result>(
  fn: (...values: Arguments) => Result,
  state: readonly object[],
  fuse?: boolean,
) => Compiled<Arguments, Result>;

let registered: Compiler | null = null;

/** Returns the compiler; null if only parts of the package were loaded. */
export const compiler = (): Compiler | null => registered;

/** Registers the compiler. */
export function setCompiler(given: Compiler): void {
  registered = given;
}
