// Divides batches of matrices among threads.
#pragma once

#include "../memory.h"
#include "../parallel.h"
#include "matrices.h"
#include "tuning.h"

#include <atomic>
#include <mutex>
#include <vector>

namespace orchard {

// Scratch memory for threads that compute at the same time. Each `Part` borrows a share for its lifetime.
template <class T> class ScratchParts {
public:
  ScratchParts(int64_t parts, int64_t elements)
      : elements_(size_class_of(elements)), all_(scratch_product({parts, elements_})) {
    for (int64_t part = parts; part-- > 0;) free_.push_back(part);
  }

  class Part {
  public:
    explicit Part(ScratchParts &owner) : owner_(owner), index_(owner.take()) {}
    ~Part() { owner_.give_back(index_); }
    Part(const Part &) = delete;
    T *data() const { return owner_.elements_ == 0 ? nullptr : owner_.all_.data() + index_ * owner_.elements_; }

  private:
    ScratchParts &owner_;
    int64_t index_;
  };

private:
  // Rounds up to whole cache lines, which avoids false sharing.
  static int64_t size_class_of(int64_t elements) {
    constexpr int64_t line = 64 / int64_t(sizeof(T));
    return scratch_product({elements / line + (elements % line != 0), line});
  }
  int64_t take() {
    std::lock_guard lock(mutex_);
    int64_t part = free_.back();
    free_.pop_back();
    return part;
  }
  void give_back(int64_t part) {
    std::lock_guard lock(mutex_);
    free_.push_back(part);
  }

  int64_t elements_;
  Scratch<T> all_;
  std::mutex mutex_;
  std::vector<int64_t> free_; // never grows beyond its initial size, so give_back does not allocate
};

// Calls body(matrix, scratch) for each matrix of a batch, on all threads. A matrix takes about `operations` operations.
// `scratch` has `elements` uninitialized elements, which no concurrent call uses. The body must not throw.
template <class T, class Body> void for_each_matrix(int64_t batch, int64_t operations, int64_t elements, Body &&body) {
  const int64_t grain = matrices_of_task(operations);
  const int64_t blocks = grain > 0 ? (batch + grain - 1) / grain : 0;
  ScratchParts<T> scratch(std::max<int64_t>(1, std::min<int64_t>(thread_count(), blocks)), elements);
  parallel_for(batch, grain, [&](int64_t begin, int64_t end) {
    typename ScratchParts<T>::Part part(scratch);
    for (int64_t matrix = begin; matrix < end; matrix++) body(matrix, part.data());
  });
}

// Calls body(first, count, scratch) for groups of `lanes` matrices of a batch, as the kernels of lanes.h compute them.
// The last group may be smaller. `scratch` has `vectors` vectors of `lanes` elements. Otherwise like `for_each_matrix`.
template <class T, class Body>
void for_each_group(int64_t batch, int64_t lanes, int64_t operations, int64_t vectors, Body &&body) {
  for_each_matrix<T>(
      (batch + lanes - 1) / lanes, operations, scratch_product({vectors, lanes}),
      [&](int64_t group, T *scratch) { body(group * lanes, std::min(lanes, batch - group * lanes), scratch); });
}

using tuning::passes::elements_of_pass;

// Calls body(begin, end) for ranges of rows. The body makes one pass over the `length` elements of each row.
template <class Body> void pass_over_rows(int64_t rows, int64_t length, Body &&body) {
  parallel_for(rows, std::max<int64_t>(1, elements_of_pass / std::max<int64_t>(1, length)), body);
}

template <class T> void copy_elements(const T *from, T *to, int64_t count) {
  parallel_for(count, elements_of_pass,
               [&](int64_t begin, int64_t end) { std::copy(from + begin, from + end, to + begin); });
}

// Copies elements on all threads. Returns whether all are finite.
template <class T> bool copy_finite(const T *from, T *to, int64_t count) {
  std::atomic<bool> is_finite{true};
  parallel_for(count, elements_of_pass, [&](int64_t begin, int64_t end) {
    if (!are_finite(from + begin, end - begin)) is_finite.store(false, std::memory_order_relaxed);
    std::copy(from + begin, from + end, to + begin);
  });
  return is_finite.load(std::memory_order_relaxed);
}

} // namespace orchard
