#include "transform.h"

#include "../linalg/batches.h"
#include "../memory.h"
#include "../parallel.h"
#include "tuning.h"

#include <algorithm>
#include <cmath>
#include <list>
#include <mutex>
#include <new>

namespace orchard {

namespace {

using tuning::fft::most_cached_bytes;
using tuning::fft::numbers_of_task;
using tuning::fft::operations_of_task;

template <class T> int64_t bytes_of(const Plan<T> &plan) {
  int64_t numbers = int64_t(plan.half_roots.size());
  if (plan.passes) numbers += int64_t(plan.passes->tables.size());
  if (plan.split) numbers += int64_t(plan.split->twiddles.size() + plan.split->first->tables.size()) * 2;
  if (plan.chirp)
    return bytes_of(*plan.chirp->padded) +
           int64_t(plan.chirp->chirp.size() + plan.chirp->spectrum.size()) * int64_t(sizeof(T));
  return numbers * int64_t(sizeof(T));
}

template <class T> std::shared_ptr<const Plan<T>> make_plan(int64_t n);

// The chirp's spectrum is computed in float64 for both dtypes.
template <class T> std::shared_ptr<const Chirp<T>> make_chirp(int64_t n) {
  auto made = std::make_shared<Chirp<T>>();
  const int64_t padded = padded_length(2 * n - 1, fft_kernels<T>().lanes);
  std::vector<double> wrapped(size_t(2 * padded)), spectrum(size_t(2 * padded));
  int64_t square = 0; // j^2 modulo 2 n
  for (int64_t j = 0; j < n; j++) {
    const Root root = root_of_unity(square, 2 * n);
    made->chirp.push_back(T(root.re));
    made->chirp.push_back(T(root.im));
    for (const int64_t at : {j, j == 0 ? 0 : padded - j}) {
      wrapped[size_t(2 * at)] = root.re;
      wrapped[size_t(2 * at + 1)] = -root.im;
    }
    square = (square + 2 * j + 1) % (2 * n);
  }
  transform_rows<double>(*make_plan<double>(padded),
                         {wrapped.data(), spectrum.data(), 0, 0, 1, false, 1 / double(padded)});
  for (const double number : spectrum) made->spectrum.push_back(T(number));
  made->padded = make_plan<T>(padded);
  return made;
}

template <class T> std::shared_ptr<const Plan<T>> make_plan(int64_t n) {
  auto made = std::make_shared<Plan<T>>();
  made->length = n;
  for (int64_t k = 0; 2 * k <= n; k++) {
    const Root root = root_of_unity(k, 2 * n);
    made->half_roots.push_back(T(root.re));
    made->half_roots.push_back(T(root.im));
  }
  if (!is_smooth(n)) {
    made->chirp = make_chirp<T>(n);
    return made;
  }
  if (n <= longest_in_lanes) made->passes = make_passes<T>(n);
  made->split = make_split<T>(n, fft_kernels<T>().lanes);
  return made;
}

// Plans that were used last, up to `most_cached_bytes` of them.
template <class T> class PlanCache {
public:
  std::shared_ptr<const Plan<T>> find(int64_t n) {
    const int lanes = fft_kernels<T>().lanes;
    std::lock_guard lock(mutex_);
    for (auto at = entries_.begin(); at != entries_.end(); ++at)
      if (at->plan->length == n && at->lanes == lanes) {
        entries_.splice(entries_.begin(), entries_, at);
        return entries_.front().plan;
      }
    auto plan = make_plan<T>(n);
    entries_.push_front({plan, lanes, bytes_of(*plan)});
    bytes_ += entries_.front().bytes;
    while (bytes_ > most_cached_bytes && entries_.size() > 1) {
      bytes_ -= entries_.back().bytes;
      entries_.pop_back();
    }
    return plan;
  }

private:
  struct Entry {
    std::shared_ptr<const Plan<T>> plan;
    int lanes; // of the instruction set
    int64_t bytes;
  };
  std::mutex mutex_;
  std::list<Entry> entries_;
  int64_t bytes_ = 0;
};

double operations_of(int64_t n) { return 5 * double(n) * std::log2(double(n) + 1); }

int64_t grain_of(double operations) {
  return std::max<int64_t>(1, int64_t(operations_of_task / std::max(1.0, operations)));
}

int64_t blocks_of(int64_t count, int64_t lanes) { return (count + lanes - 1) / lanes; }

// Numbers of `work` for the kernels.
template <class T> int64_t work_of(const Plan<T> &plan) {
  const int64_t lanes = fft_kernels<T>().lanes;
  if (plan.chirp) return work_of(*plan.chirp->padded);
  int64_t elements = plan.passes ? plan.length : 0;
  if (plan.split) elements = std::max({elements, plan.split->first->length, plan.split->blocks * lanes});
  return scratch_product({elements, 4, lanes});
}

// Numbers between the steps of a row that is not transformed in lanes.
template <class T> int64_t between_of(const Plan<T> &plan) {
  const int64_t lanes = fft_kernels<T>().lanes;
  if (plan.chirp) {
    const Plan<T> &padded = *plan.chirp->padded;
    return scratch_product({4, padded.length}) + between_of(padded);
  }
  return plan.split ? scratch_product({plan.split->first->length, plan.split->blocks, 2, lanes}) : 0;
}

template <class T> class Transform {
public:
  Transform(const Plan<T> &plan, const Batch<T> &batch) : plan_(plan), batch_(batch), lanes_(kernels_.lanes) {}

  void run() const {
    if (in_lanes()) return run_in_lanes();
    const int64_t threads = thread_count(), work = work_of(plan_);
    const bool one_by_one = batch_.count < threads;
    const int64_t parts = one_by_one ? 1 : threads;
    ScratchParts<T> works(threads, work), betweens(parts, between_of(plan_));
    auto row = [&](int64_t at, T *between) { run_row(plan_, line(at, 1), between, works); };
    if (one_by_one) {
      typename ScratchParts<T>::Part between(betweens);
      for (int64_t at = 0; at < batch_.count; at++) row(at, between.data());
    } else {
      parallel_for(batch_.count, grain_of(operations_of(plan_.length)), [&](int64_t begin, int64_t end) {
        typename ScratchParts<T>::Part between(betweens);
        for (int64_t at = begin; at < end; at++) row(at, between.data());
      });
    }
  }

private:
  // In lanes, a row costs as much as a whole vector of them.
  bool in_lanes() const {
    const Plan<T> &plan = plan_.chirp ? *plan_.chirp->padded : plan_;
    if (!plan.passes) return false;
    return !plan.split || batch_.count > lanes_ / 4 || plan.length < 2 * lanes_;
  }

  Lines<T> line(int64_t first, int64_t count) const {
    return {batch_.in + first * batch_.in_stride,
            batch_.out + first * batch_.out_stride,
            batch_.in_stride,
            batch_.out_stride,
            count,
            batch_.inverse,
            batch_.scale};
  }

  void run_in_lanes() const {
    const int64_t groups = blocks_of(batch_.count, lanes_);
    const double each = operations_of(plan_.length) * double(plan_.chirp ? 6 : 1) * double(lanes_);
    ScratchParts<T> works(std::min<int64_t>(thread_count(), groups), work_of(plan_));
    parallel_for(groups, grain_of(each), [&](int64_t begin, int64_t end) {
      typename ScratchParts<T>::Part work(works);
      for (int64_t group = begin; group < end; group++) {
        const int64_t first = group * lanes_;
        const Lines<T> lines = line(first, std::min(lanes_, batch_.count - first));
        if (plan_.chirp) kernels_.chirped_rows(*plan_.chirp, lines, work.data());
        else kernels_.rows(*plan_.passes, lines, work.data());
      }
    });
  }

  void run_row(const Plan<T> &plan, const Lines<T> &row, T *between, ScratchParts<T> &works) const {
    if (plan.chirp) return run_chirp(*plan.chirp, row, between, works);
    if (!plan.split) {
      typename ScratchParts<T>::Part work(works);
      return kernels_.rows(*plan.passes, row, work.data());
    }
    const Split<T> &split = *plan.split;
    const double block = operations_of(plan.length) / 2;
    parallel_for(split.blocks, grain_of(block / double(split.blocks)), [&](int64_t begin, int64_t end) {
      typename ScratchParts<T>::Part work(works);
      for (int64_t at = begin; at < end; at++) kernels_.split_columns(split, row, at, between, work.data());
    });
    const int64_t blocks = blocks_of(split.first->length, lanes_);
    parallel_for(blocks, grain_of(block / double(blocks)), [&](int64_t begin, int64_t end) {
      typename ScratchParts<T>::Part work(works);
      for (int64_t at = begin; at < end; at++) kernels_.split_rows(split, row, at, between, work.data());
    });
  }

  void run_chirp(const Chirp<T> &chirp, const Lines<T> &row, T *between, ScratchParts<T> &works) const {
    const Plan<T> &padded = *chirp.padded;
    const int64_t n = int64_t(chirp.chirp.size()) / 2, length = padded.length;
    T *x = between, *y = x + 2 * length, *rest = y + 2 * length;
    auto each = [](int64_t count, auto &&body) { parallel_for(count, numbers_of_task, body); };
    each(length, [&](int64_t begin, int64_t end) { kernels_.chirp_in(chirp, row, begin, end, x); });
    run_row(padded, {x, y, 0, 0, 1, false, T(1)}, rest, works);
    each(length, [&](int64_t begin, int64_t end) { kernels_.chirp_between(chirp, begin, end, y); });
    run_row(padded, {y, x, 0, 0, 1, true, T(1)}, rest, works);
    each(n, [&](int64_t begin, int64_t end) { kernels_.chirp_out(chirp, x, row, begin, end); });
  }

  const FftKernels<T> &kernels_ = fft_kernels<T>();
  const Plan<T> &plan_;
  const Batch<T> &batch_;
  int64_t lanes_;
};

} // namespace

template <class T> std::shared_ptr<const Plan<T>> plan_of(int64_t length) {
  static PlanCache<T> &cache = *new PlanCache<T>;
  try {
    return cache.find(length);
  } catch (const std::bad_alloc &) {
    fail(ORCHARD_CPU_OUT_OF_MEMORY, "no memory for the twiddles of a transform of length " + std::to_string(length));
  }
}

template <class T> void transform_rows(const Plan<T> &plan, const Batch<T> &batch) {
  if (batch.count > 0) Transform<T>(plan, batch).run();
}

template std::shared_ptr<const Plan<float>> plan_of<float>(int64_t);
template std::shared_ptr<const Plan<double>> plan_of<double>(int64_t);
template void transform_rows<float>(const Plan<float> &, const Batch<float> &);
template void transform_rows<double>(const Plan<double> &, const Batch<double> &);

} // namespace orchard
