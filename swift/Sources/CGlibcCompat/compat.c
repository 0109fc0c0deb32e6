// Swift's static libraries are built against glibc 2.38 or newer. An older glibc (Debian 12 has 2.36) lacks the names
// below. strtol and similar functions are called by their C23 names; here these call the plain functions. The only
// difference is that the C23 functions also accept the prefix "0b". strlcpy and strlcat are as POSIX 2024 defines them.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((weak)) long __isoc23_strtol(const char *text, char **end, int base) { return strtol(text, end, base); }
__attribute__((weak)) long long __isoc23_strtoll(const char *text, char **end, int base) {
  return strtoll(text, end, base);
}
__attribute__((weak)) unsigned long __isoc23_strtoul(const char *text, char **end, int base) {
  return strtoul(text, end, base);
}
__attribute__((weak)) unsigned long long __isoc23_strtoull(const char *text, char **end, int base) {
  return strtoull(text, end, base);
}

__attribute__((weak)) int __isoc23_sscanf(const char *text, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int matched = vsscanf(text, format, arguments);
  va_end(arguments);
  return matched;
}

__attribute__((weak)) size_t strlcpy(char *to, const char *from, size_t size) {
  size_t length = strlen(from), kept = length < size ? length : size - 1;
  if (size == 0) return length;
  memcpy(to, from, kept);
  to[kept] = 0;
  return length;
}

__attribute__((weak)) size_t strlcat(char *to, const char *from, size_t size) {
  size_t used = strnlen(to, size);
  return used + (used == size ? strlen(from) : strlcpy(to + used, from, size - used));
}
