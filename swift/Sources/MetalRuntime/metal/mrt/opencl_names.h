// Keywords of C++ for OpenCL that MSL programs may use as names: in strict mode they are renamed with a prefix, which
// is removed from the compiler's messages.
#ifndef MRT_OPENCL_NAMES_H
#define MRT_OPENCL_NAMES_H

#define global mrt_word_global
#define local mrt_word_local
#define generic mrt_word_generic
#define read_only mrt_word_read_only
#define write_only mrt_word_write_only
#define read_write mrt_word_read_write
#define pipe mrt_word_pipe
#define queue_t mrt_word_queue_t
#define event_t mrt_word_event_t
#define sampler_t mrt_word_sampler_t
#define clk_event_t mrt_word_clk_event_t
#define reserve_id_t mrt_word_reserve_id_t
#define image1d_t mrt_word_image1d_t
#define image1d_array_t mrt_word_image1d_array_t
#define image1d_buffer_t mrt_word_image1d_buffer_t
#define image2d_t mrt_word_image2d_t
#define image2d_array_t mrt_word_image2d_array_t
#define image2d_depth_t mrt_word_image2d_depth_t
#define image2d_array_depth_t mrt_word_image2d_array_depth_t
#define image2d_msaa_t mrt_word_image2d_msaa_t
#define image2d_array_msaa_t mrt_word_image2d_array_msaa_t
#define image2d_msaa_depth_t mrt_word_image2d_msaa_depth_t
#define image2d_array_msaa_depth_t mrt_word_image2d_array_msaa_depth_t
#define image3d_t mrt_word_image3d_t
#define vec_step mrt_word_vec_step
#define atomic_int mrt_word_atomic_int
#define atomic_uint mrt_word_atomic_uint
#define atomic_long mrt_word_atomic_long
#define atomic_ulong mrt_word_atomic_ulong
#define atomic_float mrt_word_atomic_float
#define atomic_flag mrt_word_atomic_flag
#define atomic_double mrt_word_atomic_double
#define atomic_size_t mrt_word_atomic_size_t
#define atomic_ptrdiff_t mrt_word_atomic_ptrdiff_t
#define atomic_intptr_t mrt_word_atomic_intptr_t
#define atomic_uintptr_t mrt_word_atomic_uintptr_t

#endif
