// Whether a value that nobody wrote makes a difference. Where a thread reads one, two processes of their own take the
// dispatch from there to its end, each with another value in its place. A result that then differs by more than those
// bytes depends on the value. Where none does, the value was moved on as it is, or left out (a padding that a mask
// removes), and the finding is a note.
#pragma once

#include "check/checker_report.h"
#include "check/objects.h"

#include <sys/types.h>
#include <vector>

namespace mrt::checker {

class Trials {
public:
  // Before the read that a new finding is about. True in the processes that try: there the finding's reads are filled.
  // `may_move`: the memory holds zeros where nobody wrote, so that the value itself may be a result.
  bool begin(Finding &finding, const void *identity, Site site, const std::vector<Target> &buffers, bool may_move);

  // ---- in a process that tries
  bool is_here() const { return here_.pattern; }
  bool is_about(const void *identity, Site site) const { return here_.identity == identity && here_.site == site; }
  void fill(ShadowRange &shadow, uintptr_t address, size_t size) const;
  [[noreturn]] void finish() const; // the dispatch is at its end
  [[noreturn]] static void give_up();

  // ---- in the process that asked
  void judge(uint64_t timeout_ms); // at the dispatch's end: waits for the processes
  void cancel();

private:
  struct Piece {
    uintptr_t begin;
    size_t size;
  };
  // What a process leaves: a flag, and the bytes of every buffer.
  struct Trial {
    Finding *finding = nullptr;
    uint8_t pattern = 0;
    bool may_move = false;
    pid_t process = 0;
    char *shared = nullptr;
  };
  struct Here {
    uint8_t pattern = 0; // 0: this is no process that tries
    const void *identity = nullptr;
    Site site = 0;
    char *shared = nullptr;
  };

  size_t shared_bytes() const;
  bool start(const Trial &trial, const void *identity, Site site);
  bool is_done(const Trial &trial, uint64_t timeout_ms) const;
  bool agrees(const Trial &trial) const;

  std::vector<Piece> pieces_; // of this dispatch
  std::vector<Trial> trials_; // two of each finding, one after the other
  size_t findings_ = 0;
  Here here_;
};

} // namespace mrt::checker
