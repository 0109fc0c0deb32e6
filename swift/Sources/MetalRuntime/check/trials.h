// Determines whether an uninitialized value makes a difference. When a thread reads one, six processes run the
// dispatch from there to its end, each with a different value in its place. In three of them it is the only changed
// value. In the other three, every other uninitialized value is changed too, since 0 * x and NaN * x hide the effect of
// x. If the results then differ in more than those bytes, they depend on the value. If they do not, the value was
// copied unchanged, or ignored (such as padding that a mask removes), and the finding is a note.
#pragma once

#include "check/checker_report.h"
#include "check/objects.h"

#include <sys/types.h>
#include <vector>

namespace mrt::checker {

class Trials {
public:
  static constexpr uint16_t filled = 0x100;

  // Called before the read that a new finding is about. Returns true in the trial processes, where the bytes that the
  // finding reads are filled. `may_move` says that a program may copy the value to a result without depending on it.
  bool begin(Finding &finding, const void *identity, Site site, const std::vector<Target> &buffers, bool may_move);

  // ---- in a trial process
  bool is_here() const { return here_.pattern; }
  // Returns the byte with which to fill unwritten bytes of this read, plus `filled`; 0: leave them unchanged.
  uint16_t value_for(const void *identity, Site site) const {
    return here_.identity == identity && here_.site == site ? here_.pattern : here_.others;
  }
  static void fill(ShadowRange &shadow, uintptr_t address, size_t size, uint8_t value);
  [[noreturn]] void finish() const; // called at the end of the dispatch
  [[noreturn]] static void give_up();

  // ---- in the original process
  // Called at the end of the dispatch: waits for the trial processes. `has_nan` says that a result is NaN. Trials prove
  // nothing then, since every other value may give NaN too.
  void judge(uint64_t timeout_ms, bool has_nan);
  bool is_empty() const { return trials_.empty(); }
  void cancel();

private:
  struct Piece {
    uintptr_t begin;
    size_t size;
  };
  // The result of a trial: a flag, and the bytes of every buffer.
  struct Trial {
    Finding *finding = nullptr;
    uint16_t pattern = 0, others = 0;
    bool may_move = false;
    pid_t process = 0;
    char *shared = nullptr;
  };
  struct Here {
    uint16_t pattern = 0; // 0: not a trial process
    uint16_t others = 0;
    const void *identity = nullptr;
    Site site = 0;
    char *shared = nullptr;
  };

  size_t shared_bytes() const;
  bool start(const Trial &trial, const void *identity, Site site);
  bool is_done(const Trial &trial, uint64_t timeout_ms) const;
  bool is_left_out(const Trial *first, uint64_t timeout_ms) const;
  bool agrees(const Trial &trial) const;
  bool agree(const Trial &one, const Trial &other) const;

  std::vector<Piece> pieces_; // of this dispatch
  std::vector<Trial> trials_; // grouped by finding
  size_t findings_ = 0;
  Here here_;
};

} // namespace mrt::checker
