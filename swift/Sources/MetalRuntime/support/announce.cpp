#include "support/announce.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <unistd.h>

namespace mrt {
namespace {

enum class Announce { nothing, findings, failure };

std::atomic<size_t> errors{0}, notes{0};

bool sum_up(bool fails) {
  const size_t found = errors, noted = notes;
  if (!found && !noted) return false;
  fails &= found > 0;
  fprintf(stderr, "orchard: the Metal checker found %zu error%s and %zu note%s%s\n", found, found == 1 ? "" : "s",
          noted, noted == 1 ? "" : "s", fails ? ": exit status 1 (ORCHARD_METAL_CHECK=report prints only)" : "");
  fflush(nullptr);
  return fails;
}

// A status other than 0 was set by the program, and is more informative.
void at_end(int status, void *fails) {
  if (sum_up(fails && !status)) _exit(1);
}

// Bun exits this way. The status is not known here.
template <bool fails> void at_quick_end() {
  if (sum_up(fails)) _exit(1);
}

// Returns the setting. Called once, when this code is loaded, since the handlers that are registered first are the last
// to run at exit.
Announce wish() {
  const char *value = getenv("ORCHARD_METAL_CHECK");
  const bool fails = value && !strcmp(value, "1");
  if (!fails && !(value && !strcmp(value, "report"))) return Announce::nothing;
  on_exit(at_end, fails ? &errors : nullptr);
  at_quick_exit(fails ? at_quick_end<true> : at_quick_end<false>);
  return fails ? Announce::failure : Announce::findings;
}

const Announce wished = wish();

} // namespace

// Each line is written by one call, since several processes may append to the file.
void record(const std::string &line) {
  static const int file = [] {
    const char *path = getenv("ORCHARD_FINDINGS");
    return path && *path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644) : -1;
  }();
  const std::string whole = line + "\n";
  if (file >= 0 && write(file, whole.data(), whole.size()) < 0)
    fprintf(stderr, "orchard: ORCHARD_FINDINGS cannot be written\n");
}

// In the format of compiler messages, so that editors and continuous integration find the line.
bool announce(const mrt_finding &finding) {
  if (wished == Announce::nothing) return false;
  const bool is_error = !finding.severity || !strcmp(finding.severity, "error");
  (is_error ? errors : notes)++;
  std::string place = finding.file ? finding.file : "";
  if (finding.line) place += ":" + std::to_string(finding.line);
  if (finding.line && finding.column) place += ":" + std::to_string(finding.column);
  const std::string text = (place.empty() ? "orchard" : place) + ": " + (is_error ? "error" : "note") + ": " +
                           (finding.message ? finding.message : "") + " [" + finding.kind + "]\n";
  fputs(text.c_str(), stderr);
  return true;
}

} // namespace mrt
