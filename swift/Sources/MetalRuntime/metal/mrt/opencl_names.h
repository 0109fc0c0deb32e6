// Keywords of C++ for OpenCL that MSL leaves to programs: in the strict mode they become ordinary names. The
// prefix is taken away again in what the compiler says.
#ifndef MRT_OPENCL_NAMES_H
#define MRT_OPENCL_NAMES_H

#define global mrt_type_global
#define local mrt_type_local
#define generic mrt_type_generic
#define read_only mrt_type_read_only
#define write_only mrt_type_write_only
#define read_write mrt_type_read_write
#define pipe mrt_type_pipe
#define queue_t mrt_type_queue_t
#define event_t mrt_type_event_t
#define sampler_t mrt_type_sampler_t
#define vec_step mrt_type_vec_step
#define atomic_int mrt_type_atomic_int
#define atomic_uint mrt_type_atomic_uint
#define atomic_long mrt_type_atomic_long
#define atomic_ulong mrt_type_atomic_ulong
#define atomic_float mrt_type_atomic_float
#define atomic_flag mrt_type_atomic_flag

#endif
