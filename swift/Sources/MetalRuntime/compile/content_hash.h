// A 128-bit hash of content, for names and checksums of cache files. It is not cryptographic: it protects only against
// accidental damage.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace mrt {

class ContentHash {
public:
  // The length of each part is included, so that ("ab", "c") and ("a", "bc") differ.
  ContentHash &add(std::string_view part) {
    mix(part.size());
    while (part.size() >= 8) {
      uint64_t word;
      memcpy(&word, part.data(), 8);
      mix(word);
      part.remove_prefix(8);
    }
    uint64_t tail = 0;
    memcpy(&tail, part.data(), part.size());
    mix(tail);
    return *this;
  }

  std::string hexadecimal() const {
    static const char digits[] = "0123456789abcdef";
    std::string text;
    for (uint64_t half : {finish(a ^ b), finish(b + 0x9e3779b97f4a7c15u)})
      for (int shift = 60; shift >= 0; shift -= 4) text += digits[half >> shift & 15];
    return text;
  }

private:
  static uint64_t rotate(uint64_t value, int count) { return value << count | value >> (64 - count); }
  // The finalizer of MurmurHash3.
  static uint64_t finish(uint64_t value) {
    value = (value ^ value >> 33) * 0xff51afd7ed558ccdu;
    value = (value ^ value >> 33) * 0xc4ceb9fe1a85ec53u;
    return value ^ value >> 33;
  }
  void mix(uint64_t word) {
    a = rotate(a ^ word * 0x87c37b91114253d5u, 31) * 5 + 0x52dce729;
    b = rotate(b + word * 0x4cf5ad432745937fu, 33) * 0x9e3779b97f4a7c15u + a;
  }

  uint64_t a = 0x243f6a8885a308d3u, b = 0x13198a2e03707344u;
};

} // namespace mrt
