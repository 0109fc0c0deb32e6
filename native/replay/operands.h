// The operands of a replayed call, each in memory of exactly its size, so that AddressSanitizer detects an access one
// byte past the end.
#pragma once

#include "library.h"
#include "records.h"

#include <cstdlib>
#include <memory>
#include <new>
#include <sys/mman.h>
#include <utility>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define REPLAY_ADDRESS_SANITIZER
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define REPLAY_ADDRESS_SANITIZER
#endif

#if defined(REPLAY_ADDRESS_SANITIZER)
extern "C" void __asan_poison_memory_region(const volatile void *address, size_t bytes);
extern "C" void __asan_unpoison_memory_region(const volatile void *address, size_t bytes);
#endif

namespace replay {

// An inaccessible address, for operands that a call omits.
inline void *forbidden() {
  static void *page = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return page;
}

// `bytes` bytes that begin `shift` bytes after a multiple of 64. The bytes before them are poisoned as well.
class Exact {
public:
  Exact(size_t shift, size_t bytes) : shift_(shift) {
    if (posix_memalign(&memory_, alignment, shift + bytes) != 0) throw std::bad_alloc();
#if defined(REPLAY_ADDRESS_SANITIZER)
    __asan_poison_memory_region(memory_, shift_);
#endif
  }
  ~Exact() {
#if defined(REPLAY_ADDRESS_SANITIZER)
    if (memory_) __asan_unpoison_memory_region(memory_, shift_);
#endif
    std::free(memory_);
  }
  Exact(Exact &&other) noexcept : memory_(std::exchange(other.memory_, nullptr)), shift_(other.shift_) {}
  Exact &operator=(Exact &&) = delete;
  char *data() const { return static_cast<char *>(memory_) + shift_; }

private:
  void *memory_ = nullptr;
  size_t shift_;
};

// The block of a call, also in memory of exactly its size. It is followed by the size of each operand in bytes.
class Block {
public:
  explicit Block(const Record &record) {
    size_t numbers = record.block.size() / sizeof(double);
    bytes_ = (numbers + record.operands.size()) * sizeof(double);
    data_.reset(new double[numbers + record.operands.size()]);
    for (const Operand &operand : record.operands)
      data_[numbers++] = operand.place == left_out ? -1 : static_cast<double>(operand.bytes);
    std::memcpy(data_.get(), record.block.data(), record.block.size());
  }

  const double *data() const { return data_.get(); }
  int32_t bytes() const { return static_cast<int32_t>(bytes_); }

private:
  std::unique_ptr<double[]> data_;
  size_t bytes_;
};

class Operands {
public:
  explicit Operands(const Record &record) {
    blocks_.reserve(record.operands.size());
    for (size_t index = 0; index < record.operands.size(); index++)
      addresses_[index] = place(record.operands[index], index);
    for (size_t index = record.operands.size(); index < room; index++) addresses_[index] = forbidden();
  }

  void *const *addresses() const { return addresses_; }

private:
  void *place(const Operand &operand, size_t index) {
    if (operand.place == left_out) return forbidden();
    if (operand.place >= 0 && static_cast<size_t>(operand.place) < index) return addresses_[operand.place];
    blocks_.emplace_back(operand.shift, operand.bytes);
    char *data = blocks_.back().data();
    for (size_t done = 0; done < operand.bytes; done += operand.contents.size())
      std::memcpy(data + done, operand.contents.data(), std::min(operand.contents.size(), operand.bytes - done));
    return data;
  }

  std::vector<Exact> blocks_;
  void *addresses_[room];
};

} // namespace replay
