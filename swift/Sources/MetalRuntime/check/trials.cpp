#include "check/trials.h"

#include "support/memory.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <iterator>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace mrt::checker {
namespace {

// The patterns that fill each byte of the value under trial: a large float, a small negative one, and zero; as
// integers, a positive one, a negative one, and zero, which is the smallest unsigned integer.
constexpr uint16_t patterns[] = {Trials::filled | 0x7f, Trials::filled | 0xa5, Trials::filled};
// The bytes for all other unwritten values: 0 leaves them unchanged, and 0x3f makes a float near 1.
constexpr uint16_t others[] = {0, Trials::filled | 0x3f};
constexpr size_t trials_of_finding = std::size(patterns) * std::size(others);
// Beyond these limits, findings remain errors.
constexpr size_t most_findings = 8, most_bytes = size_t(128) << 20;
constexpr size_t flag_bytes = 64;
// Processor time, which does not depend on the machine's load. It is limited, since a value may be the bound of a loop.
constexpr rlim_t longest_seconds = 5;

bool is_zero(const char *bytes, size_t size) { return size == 0 || (!bytes[0] && !memcmp(bytes, bytes + 1, size - 1)); }

} // namespace

bool Trials::begin(Finding &finding, const void *identity, Site site, const std::vector<Target> &buffers,
                   bool may_move) {
  if (findings_ >= most_findings) return false;
  if (findings_ == 0) {
    const ArenaBounds arena = arena_bounds();
    pieces_.clear();
    for (const Target &target : buffers) {
      // Memory of the program may be shared with other processes, which must not see the trials.
      if (target.begin - arena.address >= arena.size) return false;
      if (!target.constant) pieces_.push_back({target.begin, target.end - target.begin});
    }
  }
  if (shared_bytes() > most_bytes) return false;
  findings_++;
  for (const uint16_t other : others)
    for (const uint16_t pattern : patterns)
      if (start({&finding, pattern, other, may_move}, identity, site)) return true;
  return false;
}

size_t Trials::shared_bytes() const {
  size_t bytes = flag_bytes;
  for (const Piece &piece : pieces_) bytes += piece.size;
  return bytes;
}

// Returns true in the new process.
bool Trials::start(const Trial &trial, const void *identity, Site site) {
  void *shared =
      mmap(nullptr, shared_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (shared == MAP_FAILED) return false;
  const pid_t process = fork();
  if (process < 0) {
    munmap(shared, shared_bytes());
    return false;
  }
  if (process > 0) {
    trials_.push_back(trial);
    trials_.back().process = process;
    trials_.back().shared = static_cast<char *>(shared);
    return false;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit limit = {longest_seconds, longest_seconds};
  setrlimit(RLIMIT_CPU, &limit);
  trials_.clear();
  here_ = {trial.pattern, trial.others, identity, site, static_cast<char *>(shared)};
  return true;
}

// Fills the unwritten bytes of a read.
void Trials::fill(ShadowRange &shadow, uintptr_t address, size_t size, uint8_t value) {
  for (uintptr_t at = address; at < address + size; at++)
    if (!shadow.written(at, 1)) *reinterpret_cast<uint8_t *>(at) = value;
}

void Trials::finish() const {
  char *to = here_.shared + flag_bytes;
  for (const Piece &piece : pieces_) {
    for (size_t at = 0; at < piece.size; at += page_bytes) {
      const size_t size = std::min(page_bytes, piece.size - at);
      const char *from = reinterpret_cast<const char *>(piece.begin + at);
      if (!is_zero(from, size)) memcpy(to + at, from, size);
    }
    to += piece.size;
  }
  __atomic_store_n(here_.shared, 1, __ATOMIC_RELEASE);
  _exit(0);
}

void Trials::give_up() { _exit(1); }

// ---------------------------------------------------------------- in the original process

void Trials::judge(uint64_t timeout_ms, bool has_nan) {
  for (size_t at = 0; at + trials_of_finding <= trials_.size(); at++) {
    const Trial &first = trials_[at];
    if (first.finding != trials_[at + trials_of_finding - 1].finding || !is_left_out(&first, timeout_ms)) continue;
    if (has_nan) {
      first.finding->message += "; a result of the dispatch is NaN, so that it can't be told what depends on the value";
      continue;
    }
    first.finding->severity = "note";
    first.finding->message += first.may_move
                                  ? "; here the value is moved on as it is, or left out: no other result depends on it"
                                  : "; here the value is left out: no result depends on it";
  }
  cancel();
}

// Some trials keep all other unwritten values; their results must equal those of the dispatch. The other trials change
// these values too; their results must equal each other, but may differ from those of the dispatch.
bool Trials::is_left_out(const Trial *first, uint64_t timeout_ms) const {
  for (size_t i = 0; i < trials_of_finding; i++)
    if (!is_done(first[i], timeout_ms)) return false;
  const Trial *second = first + std::size(patterns);
  for (size_t i = 0; i < std::size(patterns); i++)
    if (!agrees(first[i]) || !agree(second[0], second[i])) return false;
  return true;
}

bool Trials::is_done(const Trial &trial, uint64_t timeout_ms) const {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  bool ended = false;
  while (!__atomic_load_n(trial.shared, __ATOMIC_ACQUIRE)) {
    if (ended || std::chrono::steady_clock::now() > deadline) return false;
    ended = waitpid(trial.process, nullptr, WNOHANG) == trial.process; // and check once more
    if (!ended) usleep(200);
  }
  return true;
}

// Returns whether a trial's results equal this process's. With `may_move`, a byte may have zeros or poison here and the
// trial's value there: then the unwritten value was only copied.
bool Trials::agrees(const Trial &trial) const {
  const auto moved = [&](uint8_t here, uint8_t there) {
    const bool unwritten = here == 0 || here == uint8_t(poison_word) || here == poison_word >> 8;
    return here == there || (trial.may_move && there == uint8_t(trial.pattern) && unwritten);
  };
  const char *there = trial.shared + flag_bytes;
  for (const Piece &piece : pieces_) {
    const char *here = reinterpret_cast<const char *>(piece.begin);
    for (size_t at = 0; at < piece.size; at += page_bytes) {
      const size_t size = std::min(page_bytes, piece.size - at);
      if (memcmp(here + at, there + at, size) == 0) continue;
      for (size_t i = at; i < at + size; i++)
        if (!moved(uint8_t(here[i]), uint8_t(there[i]))) return false;
    }
    there += piece.size;
  }
  return true;
}

// Compares two trials byte by byte. A byte may differ only if each trial has its own value there.
bool Trials::agree(const Trial &one, const Trial &other) const {
  const char *a = one.shared + flag_bytes, *b = other.shared + flag_bytes;
  const size_t size = shared_bytes() - flag_bytes;
  if (memcmp(a, b, size) == 0) return true;
  for (size_t i = 0; i < size; i++)
    if (a[i] != b[i] &&
        !(one.may_move && uint8_t(a[i]) == uint8_t(one.pattern) && uint8_t(b[i]) == uint8_t(other.pattern)))
      return false;
  return true;
}

void Trials::cancel() {
  for (const Trial &trial : trials_) {
    kill(trial.process, SIGKILL);
    waitpid(trial.process, nullptr, 0);
    munmap(trial.shared, shared_bytes());
  }
  trials_.clear();
  findings_ = 0;
}

} // namespace mrt::checker
