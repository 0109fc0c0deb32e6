/**
 * Which version of glibc a dylib needs. A dynamic symbol's version is a string such as `GLIBC_2.17` in the table of
 * strings; that a dylib defines no versions of its own, so every one in the file is one that it needs.
 */

/** The newest version of glibc among those that a library's symbols name: "2.28". */
export function glibcNeeded(library: Uint8Array): string {
  const text = Buffer.from(library.buffer, library.byteOffset, library.byteLength).toString("latin1");
  const versions = [...text.matchAll(/\0GLIBC_(\d+\.\d+)(?:\.\d+)?(?=\0)/g)].map(([, version]) => version!);
  const order = (a: string, b: string) => Bun.semver.order(`${a}.0`, `${b}.0`);
  return versions.sort(order).at(-1) ?? "0.0";
}
