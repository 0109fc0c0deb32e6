// Where CoreFoundation looks for the main bundle. `orchard swift` links its programs with --wrap=_CFProcessPath: their
// executables lie in a cache, and their main bundle is the folder of their source.
#include <stdlib.h>

// Weak: it is there where the linker wraps.
__attribute__((weak)) const char *__real__CFProcessPath(void);
const char *__wrap__CFProcessPath(void);

const char *__wrap__CFProcessPath(void) {
  const char *path = getenv("ORCHARD_PROGRAM_PATH");
  return path && *path ? path : __real__CFProcessPath();
}
