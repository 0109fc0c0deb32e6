#include "check/checker_report.h"

#include <algorithm>

namespace mrt::checker {

void Report::begin_dispatch(const std::string &kernel) { kernel_ = kernel; }

void Report::end_dispatch() {
  for (const Finding &found : findings_) {
    if (found.is_told) continue;
    const std::string message = "kernel '" + kernel_ + "': " + found.message +
                                (found.values_compared ? "; so far every write stored the value that was there" : "");
    mrt_finding finding = {};
    finding.kind = found.kind;
    finding.severity = found.severity;
    finding.message = message.c_str();
    finding.kernel = kernel_.c_str();
    finding.file = found.position.file.empty() ? nullptr : found.position.file.c_str();
    finding.line = found.position.line;
    finding.column = found.position.column;
    finding.other_line = found.other_line;
    std::copy(found.party.group, found.party.group + 3, finding.threadgroup);
    std::copy(found.party.thread, found.party.thread + 3, finding.thread);
    std::copy(found.other.group, found.other.group + 3, finding.other_threadgroup);
    std::copy(found.other.thread, found.other.thread + 3, finding.other_thread);
    finding.buffer = found.object.label.empty() ? nullptr : found.object.label.c_str();
    finding.offset = uint64_t(std::max<int64_t>(0, found.object.offset));
    finding.count = found.count;
    mrt_finding_add(&finding);
  }
  findings_.clear();
  known_.clear();
}

Finding &Report::find(const char *kind, const void *identity, Location at, Location other) {
  const uint64_t locations = uint64_t(std::min(at.site, other.site)) << 32 | std::max(at.site, other.site);
  Finding *&found = known_[{kind, identity, locations}];
  if (!found) {
    findings_.emplace_back();
    found = &findings_.back();
    found->kind = kind;
    found->position = position(at);
    found->other_line = position(other).line;
  }
  found->count++;
  return *found;
}

Site Report::atomic_site(const char *file, uint32_t line) {
  const std::string key = std::string(file ? file : "") + ":" + std::to_string(line);
  const auto added = atomic_numbers_.emplace(key, Site(atomic_sites_.size()));
  if (added.second) atomic_sites_.push_back({file ? file : "", line, 0});
  return added.first->second;
}

SourcePosition Report::position(Location location) const {
  if (location.atomic) return location.site < atomic_sites_.size() ? atomic_sites_[location.site] : SourcePosition();
  if (!location.site) return {};
  // A module is smaller than 4 GB, so the upper half of the program counter follows from its base address.
  uint64_t program_counter = (location.module_base & ~uint64_t(0xffffffff)) | location.site;
  if (program_counter < location.module_base) program_counter += uint64_t(1) << 32;
  return source_position(reinterpret_cast<const void *>(program_counter));
}

} // namespace mrt::checker
