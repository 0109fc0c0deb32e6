// The text that precedes every program: the whole standard library and, in flat mode, the code that makes kernels
// entries of the module. It is compiled once per build into a precompiled header.
#ifndef MRT_PRELUDE_H
#define MRT_PRELUDE_H

#include "../metal_stdlib"
#include "indirect_arguments.h"

#ifndef MRT_STRICT
#include "arrays.h"
#include "async_copy.h"
#ifdef MRT_GPU
#include "gpu/entry.h"
#else
#include "entry.h"
#endif
#ifdef MRT_CHECKED
#include "hooks.h"
#endif
#endif

#ifdef MRT_SCALAR_BFLOAT // for the program's casts (bfloat.h), and those that the rewriter marks (rewrite/scalars.cpp)
#define static_cast mrt::cast
#define MRT_CALL_CAST(T) mrt::cast<T>
#define MRT_C_CAST(T) mrt::CastTo<T>()->*
#define MRT_STEP_UP += 1
#define MRT_STEP_DOWN -= 1
#define MRT_BEFORE_UP
#define MRT_BEFORE_DOWN
#define MRT_AFTER_UP += 1
#define MRT_AFTER_DOWN -= 1
#else
#define MRT_CALL_CAST(T) T
#define MRT_C_CAST(T) (T)
#define MRT_STEP_UP ++
#define MRT_STEP_DOWN --
#define MRT_BEFORE_UP ++
#define MRT_BEFORE_DOWN --
#define MRT_AFTER_UP
#define MRT_AFTER_DOWN
#endif

#endif
