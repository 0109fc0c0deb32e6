/**
 * What the package carries in its JavaScript. Bundles and executables hold what modules import, and none of the
 * package's other files, so dylibs and kernels are imported too. Packing replaces this file's JavaScript
 * (scripts/release/assets.ts); in a clone there is nothing, and both are read from folders.
 */
export interface Packaged {
  /**
   * Paths of the dylibs in the platform's package, and in that of the software device, by file name; undefined where
   * neither is installed.
   */
  dylibs(): Readonly<Record<string, string>> | undefined;
  /** The text of every file in `kernels/`, by its path there. */
  kernels(): Readonly<Record<string, string>>;
}

export const packaged = undefined as Packaged | undefined;
