// Calls functions of LAPACK whose number of arguments varies. Each argument is a pointer. A Fortran function also gets
// the length of each string as a hidden argument after the last one. All of LAPACK's strings have one character. The
// calling conventions of x86-64 and arm64 let a caller pass more arguments than the function reads, so one call serves
// all: the arguments after the given ones are 1.
#include <stddef.h>
#include <stdint.h>

enum { most = 32 };

#define EIGHT(a, i) a[i], a[i + 1], a[i + 2], a[i + 3], a[i + 4], a[i + 5], a[i + 6], a[i + 7]
#define ALL(a) EIGHT(a, 0), EIGHT(a, 8), EIGHT(a, 16), EIGHT(a, 24)
#define EIGHT_TYPES void *, void *, void *, void *, void *, void *, void *, void *
#define ALL_TYPES EIGHT_TYPES, EIGHT_TYPES, EIGHT_TYPES, EIGHT_TYPES

static void pad(void **all, void *const *given, size_t count) {
  for (size_t i = 0; i < most; i++) all[i] = i < count ? given[i] : (void *)(uintptr_t)1;
}

int orchard_lapack_call(void *function, void *const *given, size_t count) {
  void *all[most];
  pad(all, given, count);
  return ((int (*)(ALL_TYPES))function)(ALL(all));
}

float orchard_lapack_float(void *function, void *const *given, size_t count) {
  void *all[most];
  pad(all, given, count);
  return ((float (*)(ALL_TYPES))function)(ALL(all));
}

double orchard_lapack_double(void *function, void *const *given, size_t count) {
  void *all[most];
  pad(all, given, count);
  return ((double (*)(ALL_TYPES))function)(ALL(all));
}
