#include "check/trials.h"

#include "support/memory.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace mrt::checker {
namespace {

// Each byte of a value that is tried: a large float and a small negative one, as integers positive and negative.
constexpr uint8_t patterns[] = {0x7f, 0xa5};
// Beyond these, findings stay errors.
constexpr size_t most_findings = 8, most_bytes = size_t(256) << 20;
constexpr size_t flag_bytes = 64;
// Of processor time, which is no different on a busy machine: a value may be the bound of a loop.
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
      // What is the host's own may be shared with others, who must see nothing of this.
      if (target.begin - arena.address >= arena.size) return false;
      if (!target.constant) pieces_.push_back({target.begin, target.end - target.begin});
    }
  }
  if (shared_bytes() > most_bytes) return false;
  findings_++;
  for (const uint8_t pattern : patterns)
    if (start({&finding, pattern, may_move}, identity, site)) return true;
  return false;
}

size_t Trials::shared_bytes() const {
  size_t bytes = flag_bytes;
  for (const Piece &piece : pieces_) bytes += piece.size;
  return bytes;
}

// True in the new process.
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
  here_ = {trial.pattern, identity, site, static_cast<char *>(shared)};
  return true;
}

// The same words as Checker::clear_unwritten; in threadgroup memory, which holds anything, the bytes of the read.
void Trials::fill(ShadowRange &shadow, uintptr_t address, size_t size) const {
  for (uintptr_t at = address; at < address + size; at++)
    if (!shadow.written(at, 1)) *reinterpret_cast<uint8_t *>(at) = here_.pattern;
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

// ---------------------------------------------------------------- in the process that asked

void Trials::judge(uint64_t timeout_ms) {
  for (size_t at = 0; at + 1 < trials_.size(); at++) {
    const Trial &one = trials_[at], &other = trials_[at + 1];
    if (one.finding != other.finding) continue;
    if (!is_done(one, timeout_ms) || !is_done(other, timeout_ms) || !agrees(one) || !agrees(other)) continue;
    one.finding->severity = "note";
    one.finding->message += one.may_move
                                ? "; here the value is moved on as it is, or left out: no other result depends on it"
                                : "; here the value is left out: no result depends on it";
  }
  cancel();
}

bool Trials::is_done(const Trial &trial, uint64_t timeout_ms) const {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  bool ended = false;
  while (!__atomic_load_n(trial.shared, __ATOMIC_ACQUIRE)) {
    if (ended || std::chrono::steady_clock::now() > deadline) return false;
    ended = waitpid(trial.process, nullptr, WNOHANG) == trial.process; // and look once more
    if (!ended) usleep(200);
  }
  return true;
}

// No byte differs; or, of device memory, it is one of the value that was tried, and here of the zeros or the poison in
// its place.
bool Trials::agrees(const Trial &trial) const {
  const auto moved = [&](uint8_t here, uint8_t there) {
    const bool unwritten = here == 0 || here == uint8_t(poison_word) || here == poison_word >> 8;
    return here == there || (trial.may_move && there == trial.pattern && unwritten);
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
