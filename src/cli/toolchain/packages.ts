/** The packages to install from Debian's archive. */

/** The folder's name in the cache: the compiler's version, its Debian release, and the revision of this recipe. */
export const toolchainName = "swift-6.0.3-debian13-1";

/** The Debian release that has Swift. */
export const swiftSuite = "trixie";

/** libcurl and its dependencies. SwiftPM links it, though it fetches nothing for packages without dependencies. */
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

/**
 * Swift, its standard library, and all shared libraries that they need, and SIMDe, by which C code for NEON runs on
 * x86-64. `dpkg -x` resolves no dependencies.
 */
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
  "libsimde-dev",
  ...curlPackages,
] as const;

/** GCC's major version, which is part of its package names, in each Debian release that can run the toolchain. */
const gccVersions: Record<string, number> = { bookworm: 12, trixie: 14 };

/** Whether the recipe is known to work on a release: its glibc can load what the toolchain links. */
export const isKnownRelease = (codename: string): boolean => codename in gccVersions;

/**
 * Returns the C and C++ development files of a release, for a machine that has none. They must match the machine's
 * glibc.
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
