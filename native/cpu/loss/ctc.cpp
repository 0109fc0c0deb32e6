// The functions "ctc" and "ctcGradient". The elements of a batch are divided among the threads.
#include "ctc.h"

#include "../memory.h"
#include "../parallel.h"

using namespace orchard;

namespace {

struct Sizes {
  int64_t times, batch, classes, width;

  template <class Block>
  explicit Sizes(const Block &block)
      : times(block.times), batch(block.batch), classes(block.classes), width(block.width) {
    if (times < 0 || batch < 0 || classes < 1 || width < 1)
      fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected at least one class and one state");
  }
};

Extent dense(int64_t first, int64_t second, int64_t third = 1) {
  Extent extent = Extent(third).along(second, third);
  return extent.along(first, extent.count());
}

// The elements of a batch. States and lengths are copied and the copy is checked, since another thread may change the
// operands during a call.
template <class T> class Batch {
public:
  const Sizes sizes;

  template <class Block>
  Batch(const Block &block, const Operands &operands)
      : sizes(block), strides_{block.strides[0], block.strides[1], block.strides[2]},
        states_(scratch_product({sizes.batch, sizes.width})), lengths_(scratch_product({2, sizes.batch})) {
    log_probs_ = operands.inputs<T>(
        0, block.offsets[0],
        Extent().along(sizes.times, strides_[0]).along(sizes.batch, strides_[1]).along(sizes.classes, strides_[2]));
    copy_checked(operands.inputs<int64_t>(1, block.offsets[1], dense(sizes.batch, sizes.width)),
                 sizes.batch * sizes.width, sizes.classes - 1, states_.data());
    const int64_t *lengths = operands.inputs<int64_t>(2, block.offsets[2], dense(2, sizes.batch));
    copy_checked(lengths, sizes.batch, sizes.times, lengths_.data());
    copy_checked(lengths + sizes.batch, sizes.batch, (sizes.width - 1) / 2, lengths_.data() + sizes.batch);
  }

  CtcElement<T> at(int64_t element, T *alphas, double *totals) {
    return {lengths_.data()[element],
            2 * lengths_.data()[sizes.batch + element] + 1,
            states_.data() + element * sizes.width,
            log_probs_ + element * strides_[1],
            strides_[0],
            strides_[2],
            alphas + element * sizes.times * sizes.width,
            sizes.width,
            totals + element * (sizes.times + 1),
            sizes.times};
  }

  // Returns the divisor of an element's loss.
  T divisor(int64_t element, bool is_mean) {
    return is_mean ? T(std::max<int64_t>(lengths_.data()[sizes.batch + element], 1)) : T(1);
  }

  // Calls use(worker, element) for all elements, on several threads; each thread has a worker number.
  template <class Use> void run(Use &&use) const {
    const int64_t workers = workers_count();
    parallel_for(workers, 1, [&](int64_t worker, int64_t) {
      for (int64_t i = sizes.batch * worker / workers; i < sizes.batch * (worker + 1) / workers; i++) use(worker, i);
    });
  }
  int64_t workers_count() const { return std::min<int64_t>(std::max<int64_t>(sizes.batch, 1), thread_count()); }

private:
  static void copy_checked(const int64_t *from, int64_t count, int64_t most, int64_t *to) {
    for (int64_t i = 0; i < count; i++) {
      const int64_t value = from[i];
      if (value < 0 || value > most)
        fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected classes, times and labels in range, got " + std::to_string(value));
      to[i] = value;
    }
  }

  int64_t strides_[3];
  const T *log_probs_;
  Scratch<int64_t> states_, lengths_;
};

void ctc(const CtcBlock &block, Operands operands) {
  with_real(block.dtype, [&](auto real) {
    using T = decltype(real);
    Batch<T> batch(block, operands);
    const Sizes &sizes = batch.sizes;
    T *alphas = operands.results<T>(3, block.offsets[3], dense(sizes.batch, sizes.times, sizes.width));
    double *totals = operands.results<double>(4, block.offsets[4], dense(sizes.batch, sizes.times + 1));
    T *losses = operands.results<T>(5, block.offsets[5], Extent(sizes.batch));
    const int64_t room = 4 * ctc_room(sizes.width);
    Scratch<T> space(scratch_product({batch.workers_count(), room}));
    batch.run([&](int64_t worker, int64_t element) {
      const T loss = T(ctc_kernels().of<T>().forward(batch.at(element, alphas, totals), space.data() + worker * room));
      losses[element] = (loss > T(ctc_infinite) ? T(block.infinite) : loss) / batch.divisor(element, block.is_mean);
    });
  });
}

void ctc_gradient(const CtcGradientBlock &block, Operands operands) {
  with_real(block.dtype, [&](auto real) {
    using T = decltype(real);
    Batch<T> batch(block, operands);
    const Sizes &sizes = batch.sizes;
    const T *alphas = operands.inputs<T>(3, block.offsets[3], dense(sizes.batch, sizes.times, sizes.width));
    const double *totals = operands.inputs<double>(4, block.offsets[4], dense(sizes.batch, sizes.times + 1));
    const T *factors = operands.inputs<T>(5, block.offsets[5], Extent(sizes.batch));
    T *gradient = operands.results<T>(6, block.offsets[6], dense(sizes.times, sizes.batch, sizes.classes));
    const int64_t room = 6 * ctc_room(sizes.width), workers = batch.workers_count();
    Scratch<T> space(scratch_product({workers, room}));
    Scratch<double> sums(scratch_product({workers, sizes.classes}));
    std::fill_n(sums.data(), workers * sizes.classes, 0.0);
    batch.run([&](int64_t worker, int64_t element) {
      const int64_t step = sizes.batch * sizes.classes;
      T *to = gradient + element * sizes.classes;
      for (int64_t time = 0; time < sizes.times; time++) std::fill_n(to + time * step, sizes.classes, T(0));
      const CtcElement<T> item = batch.at(element, const_cast<T *>(alphas), const_cast<double *>(totals));
      const T factor = factors[element] / batch.divisor(element, block.is_mean);
      if (factor == 0 || T(item.totals[item.loss_at]) > T(ctc_infinite)) return;
      ctc_kernels().of<T>().backward(item, factor, space.data() + worker * room, sums.data() + worker * sizes.classes,
                                     to, step);
    });
  });
}

ORCHARD_FUNCTION("ctc", ctc, CtcBlock, 6)
ORCHARD_FUNCTION("ctcGradient", ctc_gradient, CtcGradientBlock, 7)

} // namespace
