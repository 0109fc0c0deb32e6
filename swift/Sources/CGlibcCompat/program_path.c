// The path from which CoreFoundation derives the main bundle. `orchard swift` links programs with
// --wrap=_CFProcessPath, since their executables are in a cache, but their main bundle is the folder of their source.
#include <stdlib.h>

// Weak: it exists only in programs that are linked with --wrap.
__attribute__((weak)) const char *__real__CFProcessPath(void);
const char *__wrap__CFProcessPath(void);

const char *__wrap__CFProcessPath(void) {
  const char *path = getenv("ORCHARD_PROGRAM_PATH");
  return path && *path ? path : __real__CFProcessPath();
}
