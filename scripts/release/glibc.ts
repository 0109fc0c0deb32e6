/**
 * Finds the version of glibc that a dylib needs. The version of a dynamic symbol is a string such as `GLIBC_2.17` in
 * the string table. A dylib defines no such versions itself, so it needs every one in the file.
 */

/** Returns the newest version of glibc that a library's symbols name: "2.28". */
export function glibcNeeded(library: Uint8Array): string {
  const text = Buffer.from(library.buffer, library.byteOffset, library.byteLength).toString("latin1");
  const versions = [...text.matchAll(/\0GLIBC_(\d+\.\d+)(?:\.\d+)?(?=\0)/g)].map(([, version]) => version);
  const order = (a: string, b: string) => Bun.semver.order(`${a}.0`, `${b}.0`);
  return versions.sort(order).at(-1) ?? "0.0";
}
