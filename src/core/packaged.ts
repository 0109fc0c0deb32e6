/**
 * Files that the package contains as imports. Bundles and executables contain only imported modules, so dylibs and
 * kernels are imported too. Packing replaces this file's JavaScript (scripts/release/assets.ts). In a clone it is
 * undefined, and both are read from folders.
 */
export interface Packaged {
  /**
   * Returns the path of a dylib in the platform's package or the software device's package; undefined if it is in
   * neither.
   *
   * @param platform the end of the packages' names, such as `linux-x64-musl`
   */
  dylib(platform: string, fileName: string): string | undefined;
  /** Returns the text of each file in `kernels/`, by its path in that folder. */
  kernels(): Readonly<Record<string, string>>;
}

export const packaged: Packaged | undefined = undefined;
