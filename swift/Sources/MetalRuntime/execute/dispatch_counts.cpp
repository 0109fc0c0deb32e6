// The counters of dispatches that ran with the setting `count`: one entry per label and kernel, in order of first
// occurrence.
#include "execute/dispatch_counts.h"

#include "support/json.h"
#include "support/settings.h"

#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace mrt {
namespace {

struct Entry {
  std::optional<std::string> label;
  std::string kernel;
  uint64_t count = 0;
  mrt_counters counters = {};
};

struct Field {
  const char *name;
  uint64_t mrt_counters::*value;
};

constexpr Field fields[] = {
    {"device_bytes_read", &mrt_counters::device_bytes_read},
    {"device_bytes_written", &mrt_counters::device_bytes_written},
    {"threadgroup_bytes_read", &mrt_counters::threadgroup_bytes_read},
    {"threadgroup_bytes_written", &mrt_counters::threadgroup_bytes_written},
    {"matrix_multiply_accumulates", &mrt_counters::matrix_multiply_accumulates},
    {"barriers", &mrt_counters::barriers},
    {"simd_operations", &mrt_counters::simd_operations},
    {"atomics", &mrt_counters::atomics},
    {"threads", &mrt_counters::threads},
    {"threadgroups", &mrt_counters::threadgroups},
    {"cache_lines_read", &mrt_counters::cache_lines_read},
    {"cache_lines_written", &mrt_counters::cache_lines_written},
    {"constant_bytes_read", &mrt_counters::constant_bytes_read},
};
static_assert(sizeof fields / sizeof *fields * sizeof(uint64_t) == sizeof(mrt_counters), "a counter is missing");

std::string to_json(const Entry &entry) {
  JsonObject counters;
  for (const Field &field : fields) counters.number(field.name, entry.counters.*field.value);
  JsonObject object;
  object.text("label", entry.label.value_or(std::string()), entry.label.has_value());
  object.text("kernel", entry.kernel);
  object.number("count", entry.count);
  object.object("counters", counters);
  return object.finish();
}

class DispatchCounts {
public:
  void add(const char *label, const char *kernel, const mrt_counters &counters) {
    std::lock_guard lock(mutex_);
    auto name = label ? std::optional<std::string>(label) : std::nullopt;
    auto [known, fresh] = index_.emplace(std::pair(name, std::string(kernel)), entries_.size());
    if (fresh) entries_.push_back({name, kernel});
    Entry &entry = entries_[known->second];
    entry.count++;
    add_counters(entry.counters, counters);
  }

  std::string json(bool clear) {
    std::lock_guard lock(mutex_);
    std::string list = "[";
    for (const Entry &entry : entries_) list += (list.size() > 1 ? ",\n " : "") + to_json(entry);
    if (clear) {
      entries_.clear();
      index_.clear();
    }
    return list + "]";
  }

private:
  std::mutex mutex_;
  std::vector<Entry> entries_;
  std::map<std::pair<std::optional<std::string>, std::string>, size_t> index_; // position in entries_
};

DispatchCounts &dispatch_counts() {
  static DispatchCounts &instance = *new DispatchCounts;
  return instance;
}

} // namespace

void add_counters(mrt_counters &sum, const mrt_counters &part) {
  for (const Field &field : fields) sum.*field.value += part.*field.value;
}

void record_counters(const char *label, const char *kernel, const mrt_counters &counters) {
  dispatch_counts().add(label, kernel, counters);
}

} // namespace mrt

char *mrt_dispatch_counts_json(bool clear) { return mrt::copy_string(mrt::dispatch_counts().json(clear)); }
