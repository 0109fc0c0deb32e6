#include "execute/report.h"

#include "check/checker.h"

#include <algorithm>

namespace mrt {
namespace {

std::string triple(const mrt_u32 (&value)[3]) {
  return '(' + std::to_string(value[0]) + ", " + std::to_string(value[1]) + ", " + std::to_string(value[2]) + ')';
}

void set_position(const MrtThread *from, uint32_t (&threadgroup)[3], uint32_t (&thread)[3]) {
  if (!from) return;
  std::copy_n(from->group->threadgroup_position_in_grid, 3, threadgroup);
  std::copy_n(from->thread_position_in_threadgroup, 3, thread);
}

} // namespace

std::string describe_thread(const MrtThread &thread) {
  return "thread " + triple(thread.thread_position_in_threadgroup) + " of threadgroup " +
         triple(thread.group->threadgroup_position_in_grid);
}

std::string describe_line(const char *file, mrt_u32 line) {
  return (file ? std::string(file) : std::string("an unknown file")) + ':' + std::to_string(line);
}

std::string add_report(const Report &report, const std::string &sentence) {
  if (checker::is_trial()) return {}; // the original process reports it
  std::string message = std::string("kernel '") + report.kernel + "': " + sentence;
  mrt_finding finding = {};
  finding.kind = report.kind;
  finding.severity = "error";
  finding.message = message.c_str();
  finding.kernel = report.kernel;
  finding.file = report.file;
  finding.line = report.line;
  finding.other_line = report.other_line;
  set_position(report.thread, finding.threadgroup, finding.thread);
  set_position(report.other, finding.other_threadgroup, finding.other_thread);
  mrt_finding_add(&finding);
  return message;
}

} // namespace mrt
