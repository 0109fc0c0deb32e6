// The functions that SIMD-groups and quad-groups share (MSL 6.9.2 and 6.9.3), in one table.
//
// MRT_LANE_FUNCTIONS(P, G) declares all of them with the prefix P, for the group G (simd or quad).
#ifndef MRT_LANE_FUNCTIONS_H
#define MRT_LANE_FUNCTIONS_H

#include "lanes.h"

#ifndef MRT_STRICT
namespace mrt {
constexpr mrt_u32 simd_width = 32, quad_width = 4;
constexpr MrtCollectiveKind simd_kind = MRT_COLLECTIVE_SIMD, quad_kind = MRT_COLLECTIVE_QUAD;
} // namespace mrt
#endif

#ifdef MRT_GPU
#define MRT_LANE_MEETING(G, name) mrt::Meeting()
#else
#define MRT_LANE_MEETING(G, name) {mrt::G##_kind, #G "_" #name, site}
#endif

#define MRT_LANE_REDUCTION(P, G, name, Operation, types)                                                               \
  template <typename T, mrt::if_lane_##types<T> = 0>                                                                   \
  MRT_COOPERATIVE T P##_##name(T data MRT_SITE)                                                                        \
      MRT_BODY(return mrt::lane_reduction<mrt::Operation, mrt::G##_width, T>(data, MRT_LANE_MEETING(G, name));)

#define MRT_LANE_PREFIX(P, G, name, Operation, inclusive)                                                              \
  template <typename T, mrt::if_lane_number<T> = 0>                                                                    \
  MRT_COOPERATIVE T P##_##name(T data MRT_SITE) MRT_BODY(                                                              \
      return mrt::lane_prefix<mrt::Operation, inclusive, mrt::G##_width, T>(data, MRT_LANE_MEETING(G, name));)

#define MRT_LANE_PERMUTATION(P, G, name, Rule)                                                                         \
  template <typename T, mrt::if_lane_number<T> = 0>                                                                    \
  MRT_COOPERATIVE T P##_##name(T data, ushort parameter MRT_SITE)                                                      \
      MRT_BODY(return mrt::lane_permutation<mrt::Rule, mrt::G##_width, T>(mrt::Permuted<T>{data, data, parameter, 0},  \
                                                                          MRT_LANE_MEETING(G, name));)

#define MRT_LANE_FILL(P, G, name, Rule)                                                                                \
  template <typename T, mrt::if_lane_number<T> = 0>                                                                    \
  MRT_COOPERATIVE T P##_##name(T data, T filling_data, ushort delta, ushort modulo MRT_SITE)                           \
      MRT_BODY(return mrt::lane_permutation<mrt::Rule, mrt::G##_width, T>(                                             \
                          mrt::Permuted<T>{data, filling_data, delta, modulo},                                         \
                          MRT_LANE_MEETING(G, name));) template <typename T, mrt::if_lane_number<T> = 0>               \
      MRT_COOPERATIVE T P##_##name(T data, T filling_data, ushort delta MRT_SITE)                                      \
          MRT_BODY(return P##_##name(data, filling_data, delta, ushort(mrt::G##_width), site);)

#define MRT_LANE_FIRST(P, G)                                                                                           \
  template <typename T, mrt::if_lane_number<T> = 0>                                                                    \
  MRT_COOPERATIVE T P##_broadcast_first(T data MRT_SITE)                                                               \
      MRT_BODY(return mrt::lane_first<mrt::G##_width, T>(data, MRT_LANE_MEETING(G, broadcast_first));)

// clang-format off
#define MRT_LANE_FUNCTIONS(P, G)                                        \
  MRT_LANE_REDUCTION(P, G, sum,     Sum,     number)                    \
  MRT_LANE_REDUCTION(P, G, product, Product, number)                    \
  MRT_LANE_REDUCTION(P, G, min,     Minimum, number)                    \
  MRT_LANE_REDUCTION(P, G, max,     Maximum, number)                    \
  MRT_LANE_REDUCTION(P, G, and,     And,     integer)                   \
  MRT_LANE_REDUCTION(P, G, or,      Or,      integer)                   \
  MRT_LANE_REDUCTION(P, G, xor,     Xor,     integer)                   \
  MRT_LANE_PREFIX(P, G, prefix_inclusive_sum,     Sum,     true)        \
  MRT_LANE_PREFIX(P, G, prefix_exclusive_sum,     Sum,     false)       \
  MRT_LANE_PREFIX(P, G, prefix_inclusive_product, Product, true)        \
  MRT_LANE_PREFIX(P, G, prefix_exclusive_product, Product, false)       \
  MRT_LANE_PERMUTATION(P, G, broadcast,           Broadcast)            \
  MRT_LANE_PERMUTATION(P, G, shuffle,             ByLane)               \
  MRT_LANE_PERMUTATION(P, G, shuffle_xor,         ByMask)               \
  MRT_LANE_PERMUTATION(P, G, shuffle_up,          Up)                   \
  MRT_LANE_PERMUTATION(P, G, shuffle_down,        Down)                 \
  MRT_LANE_PERMUTATION(P, G, shuffle_rotate_up,   RotateUp)             \
  MRT_LANE_PERMUTATION(P, G, shuffle_rotate_down, RotateDown)           \
  MRT_LANE_FILL(P, G, shuffle_and_fill_up,        FillUp)               \
  MRT_LANE_FILL(P, G, shuffle_and_fill_down,      FillDown)             \
  MRT_LANE_FIRST(P, G)
// clang-format on

// The votes of the group G; `members` has one bit for each of its lanes.
#define MRT_LANE_VOTES(G, members)                                                                                     \
  class G##_vote {                                                                                                     \
  public:                                                                                                              \
    typedef ulong vote_t;                                                                                              \
    explicit constexpr MRT_METHOD G##_vote(vote_t v = 0) : v(v) {}                                                     \
    explicit constexpr MRT_METHOD operator vote_t() const { return v; }                                                \
    constexpr MRT_METHOD bool all() const { return (v & members) == members; }                                         \
    constexpr MRT_METHOD bool any() const { return (v & members) != 0; }                                               \
                                                                                                                       \
  private:                                                                                                             \
    vote_t v; /* bit i: the vote of lane i */                                                                          \
  };                                                                                                                   \
  MRT_COOPERATIVE G##_vote G##_ballot(bool expression MRT_SITE)                                                        \
      MRT_BODY(return G##_vote(MRT_LANE_VOTE(G, ballot, expression).yes);)                                             \
          MRT_COOPERATIVE G##_vote G##_active_threads_mask(MRT_SITE_ONLY)                                              \
              MRT_BODY(return G##_vote(MRT_LANE_VOTE(G, active_threads_mask, true).active);)                           \
                  MRT_COOPERATIVE bool G##_all(bool expression MRT_SITE)                                               \
                      MRT_BODY(const mrt::Vote vote = MRT_LANE_VOTE(G, all, expression);                               \
                               return vote.yes == vote.active;) MRT_COOPERATIVE bool G##_any(bool expression MRT_SITE) \
                          MRT_BODY(return MRT_LANE_VOTE(G, any, expression).yes !=                                     \
                                              0;) /* The active lane with the lowest index. */                         \
      MRT_COOPERATIVE bool G##_is_first(MRT_SITE_ONLY)                                                                 \
          MRT_BODY(const mrt::Vote vote = MRT_LANE_VOTE(G, is_first, true);                                            \
                   return mrt_u32(__builtin_ctz(vote.active)) ==                                                       \
                          vote.index;) /* Only fragment functions have helper threads. */                              \
      MRT_CALL bool G##_is_helper_thread() MRT_BODY(return false;)

#define MRT_LANE_VOTE(G, name, expression) mrt::lane_vote<mrt::G##_width>(expression, MRT_LANE_MEETING(G, name))

#endif
