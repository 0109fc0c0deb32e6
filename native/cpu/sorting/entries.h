// Elements as keys with their indices, to be sorted or selected.
#pragma once

#include "keys.h"

#include <cstdint>

namespace orchard::ORCHARD_ISA {

// An element's key, and its index to order equal elements. 32-bit keys and indices share a word, which compares faster.
struct KeyAndIndex {
  uint64_t key, index;
  bool operator<(const KeyAndIndex &other) const { return key != other.key ? key < other.key : index < other.index; }
};
inline void set(uint64_t &entry, uint64_t key, uint64_t index) { entry = key << 32 | index; }
inline void set(KeyAndIndex &entry, uint64_t key, uint64_t index) { entry = {key, index}; }
inline int64_t index_in(uint64_t entry) { return int64_t(entry & 0xffffffff); }
inline int64_t index_in(const KeyAndIndex &entry) { return int64_t(entry.index); }
inline uint64_t key_in(uint64_t entry) { return entry >> 32; }
inline uint64_t key_in(const KeyAndIndex &entry) { return entry.key; }

} // namespace orchard::ORCHARD_ISA
