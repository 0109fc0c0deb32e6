/** What is taken from Debian's archive, and how things are named in it. */

/** The folder's name in the cache: the compiler's version, the release it is from, and the revision of this recipe. */
export const toolchainName = "swift-6.0.3-debian13-1";

/** The release that has Swift. */
export const swiftSuite = "trixie";

/** libcurl and what it needs: SwiftPM is linked with it, though a package without dependencies fetches nothing. */
const curlPackages = [
  "libcurl4t64",
  "libbrotli1",
  "libcom-err2",
  "libffi8",
  "libgmp10",
  "libgnutls30t64",
  "libgssapi-krb5-2",
  "libhogweed6t64",
  "libidn2-0",
  "libk5crypto3",
  "libkeyutils1",
  "libkrb5-3",
  "libkrb5support0",
  "libldap2",
  "libnettle8t64",
  "libnghttp2-14",
  "libnghttp3-9",
  "libp11-kit0",
  "libpsl5t64",
  "librtmp1",
  "libsasl2-2",
  "libssh2-1t64",
  "libssl3t64",
  "libtasn1-6",
  "libunistring5",
] as const;

/** Swift, its standard library, and every shared library that they need, as far as `dpkg -x` is concerned. */
export const swiftPackages = [
  "swiftlang",
  "libswiftlang",
  "swiftlang-dev",
  "libc6",
  "libstdc++6",
  "libgcc-s1",
  "libedit2",
  "libncurses6",
  "libtinfo6",
  "libpython3.13",
  "libsqlite3-0",
  "libuuid1",
  "libxml2",
  "libzstd1",
  "zlib1g",
  "libicu76",
  "liblzma5",
  "libbsd0",
  "libmd0",
  "libexpat1",
  "patchelf",
  ...curlPackages,
] as const;

/** GCC's major version in each Debian release on which the toolchain can run: its packages carry it in their names. */
const gccVersions: Record<string, number> = { bookworm: 12, trixie: 14 };

/** True where the recipe is known to work: the release's glibc can load what the toolchain links. */
export const isKnownRelease = (codename: string): boolean => codename in gccVersions;

/**
 * C and C++ development files of a release, for a machine that has none: the link must match the machine's own glibc.
 */
export function developmentPackages(codename: string): string[] {
  const gcc = gccVersions[codename];
  if (!gcc) throw new Error(`no packages are known for Debian ${codename}`);
  return [
    "libc6",
    "libc6-dev",
    "linux-libc-dev",
    "libcrypt1",
    "libcrypt-dev",
    "libgcc-s1",
    "libstdc++6",
    `libgcc-${gcc}-dev`,
    `libstdc++-${gcc}-dev`,
  ];
}
