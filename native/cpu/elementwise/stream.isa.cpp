#include "stream.h"

#if defined(__x86_64__)

#include <cstring>
#include <immintrin.h>

namespace orchard::ORCHARD_ISA {
namespace {

#if defined(__AVX512F__)
using Vector = __m512i;
inline void stream(Vector *target, const Vector *source) { _mm512_stream_si512(target, _mm512_loadu_si512(source)); }
#elif defined(__AVX__)
using Vector = __m256i;
inline void stream(Vector *target, const Vector *source) { _mm256_stream_si256(target, _mm256_loadu_si256(source)); }
#else
using Vector = __m128i;
inline void stream(Vector *target, const Vector *source) { _mm_stream_si128(target, _mm_loadu_si128(source)); }
#endif

void copy(const void *source, void *target, int64_t bytes) {
  const Vector *in = static_cast<const Vector *>(source);
  Vector *out = static_cast<Vector *>(target);
  const int64_t vectors = bytes / int64_t(sizeof(Vector));
  for (int64_t i = 0; i < vectors; i++) stream(out + i, in + i);
  std::memcpy(out + vectors, in + vectors, bytes % int64_t(sizeof(Vector)));
}
void finish() { _mm_sfence(); }

} // namespace

extern const Streams streams = {copy, finish};

} // namespace orchard::ORCHARD_ISA

#else

namespace orchard::ORCHARD_ISA {
extern const Streams streams = {nullptr, nullptr};
}

#endif
