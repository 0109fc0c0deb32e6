// What precedes every program: the whole standard library, and in the flat mode what turns kernels into entries.
// Compiled once for each build into a precompiled header.
#ifndef MRT_PRELUDE_H
#define MRT_PRELUDE_H

#include "../metal_stdlib"

#ifndef MRT_STRICT
#include "entry.h"
#ifdef MRT_CHECKED
#include "hooks.h"
#endif
#endif

#ifdef MRT_SCALAR_BFLOAT // the program's casts (bfloat.h)
#define static_cast mrt::cast
#endif

#endif
