// Settings and injected faults: two tables indexed by name.
#include "support/settings.h"

#include "include/metal_runtime.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <sched.h>
#include <thread>

namespace mrt {
namespace {

enum class Kind { number, choice, text };

struct Row {
  Setting setting;
  const char *name;
  Kind kind;
  int64_t minimum, maximum;            // for a number
  std::array<const char *, 3> choices; // for a choice
  int64_t (*default_number)();
  std::string (*default_text)();
};

template <int64_t value> int64_t constant() { return value; }
// Returns the processors of the affinity mask; the call fails if the machine has more than a mask can hold.
int64_t processors() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return std::max(1, CPU_COUNT(&allowed));
  return std::max(1u, std::thread::hardware_concurrency());
}
std::string nothing() { return {}; }
std::string driver_name() { return "libcuda.so.1"; }

std::string default_cache() {
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  if (cache && *cache) return std::string(cache) + "/orchard/kernels";
  return home && *home ? std::string(home) + "/.cache/orchard/kernels" : std::string();
}

constexpr int64_t unlimited = INT64_MAX;

template <int64_t value> constexpr Row number(Setting setting, const char *name, int64_t minimum, int64_t maximum) {
  return {setting, name, Kind::number, minimum, maximum, {}, constant<value>, nullptr};
}
template <int64_t value> constexpr Row flag(Setting setting, const char *name) {
  return number<value>(setting, name, 0, 1);
}
constexpr Row text(Setting setting, const char *name, std::string (*value)()) {
  return {setting, name, Kind::text, 0, 0, {}, nullptr, value};
}
constexpr Row choice(Setting setting, const char *name, std::array<const char *, 3> choices) {
  return {setting, name, Kind::choice, 0, 0, choices, constant<0>, nullptr};
}

// In the order of the enumeration; include/metal_runtime.h explains each setting.
constexpr Row rows[] = {
    choice(Setting::check, "check", {"0", "1", "report"}),
    flag<0>(Setting::count, "count"),
    {Setting::workers, "workers", Kind::number, 1, 1024, {}, processors, nullptr},
    number<1>(Setting::seed, "seed", 0, unlimited),
    choice(Setting::denormals, "denormals", {"keep", "flush"}),
    flag<0>(Setting::contract, "contract"),
    choice(Setting::fast, "fast", {"auto", "0", "1"}),
    choice(Setting::poison, "poison", {"auto", "0", "1"}),
    number<1024>(Setting::max_threads, "max_threads", 1, 1024),
    number<60000>(Setting::timeout_ms, "timeout_ms", 1, unlimited),
    number<60000>(Setting::compile_timeout_ms, "compile_timeout_ms", 1, INT32_MAX),
    number<1000000>(Setting::spin_limit, "spin_limit", 1, unlimited),
    flag<1>(Setting::strict, "strict"),
    text(Setting::cache, "cache", default_cache),
    number<512 << 20>(Setting::cache_limit, "cache_limit", 0, unlimited),
    text(Setting::clang, "clang", nothing),
    text(Setting::headers, "headers", nothing),
    number<1000>(Setting::max_findings, "max_findings", 0, unlimited),
    flag<1>(Setting::abort_on_misuse, "abort_on_misuse"),
    number<0>(Setting::memory_limit, "memory_limit", 0, unlimited),
    flag<1>(Setting::execute, "execute"),
    flag<0>(Setting::whole, "whole"),
    choice(Setting::after_fault, "after_fault", {"continue", "ignore", "discard"}),
    text(Setting::gpu_clang, "gpu_clang", nothing),
    flag<0>(Setting::gpu_compile, "gpu_compile"),
    flag<0>(Setting::gpu_graphs, "gpu_graphs"),
    text(Setting::cuda, "cuda", driver_name),
    text(Setting::device, "device", nothing),
};
constexpr size_t row_count = sizeof rows / sizeof *rows;

constexpr bool rows_follow_the_enumeration() {
  for (size_t index = 0; index < row_count; index++)
    if (size_t(rows[index].setting) != index) return false;
  return row_count == size_t(Setting::device) + 1;
}
static_assert(rows_follow_the_enumeration(), "a setting is looked up by its position");

bool parse(const Row &row, const std::string &value, int64_t &parsed, std::string &problem) {
  if (row.kind == Kind::number) {
    char *end = nullptr;
    errno = 0;
    parsed = strtoll(value.c_str(), &end, 10);
    if (!value.empty() && !*end && !errno && parsed >= row.minimum && parsed <= row.maximum) return true;
    problem = "a whole number from " + std::to_string(row.minimum) +
              (row.maximum == unlimited ? " up" : " to " + std::to_string(row.maximum));
    return false;
  }
  for (size_t index = 0; index < row.choices.size() && row.choices[index]; index++) {
    if (value == row.choices[index]) return parsed = int64_t(index), true;
    problem += (index ? ", " : "one of ") + std::string(row.choices[index]);
  }
  return false;
}

class Settings {
public:
  Settings() {
    for (size_t index = 0; index < row_count; index++) {
      const Row &row = rows[index];
      if (row.kind == Kind::text) texts[index] = row.default_text();
      else numbers[index] = row.default_number();
      read_environment(row);
    }
  }

  bool set(const Row &row, const std::string &value, std::string &message) {
    if (row.kind == Kind::text) {
      std::lock_guard<std::mutex> lock(mutex);
      texts[size_t(row.setting)] = value;
      return true;
    }
    int64_t parsed = 0;
    std::string expected;
    if (!parse(row, value, parsed, expected)) {
      message = "expected setting " + std::string(row.name) + " to be " + expected + ", got \"" + value + "\"";
      return false;
    }
    numbers[size_t(row.setting)] = parsed;
    return true;
  }

  std::string get(const Row &row) {
    if (row.kind == Kind::text) return text_of(row.setting);
    int64_t value = numbers[size_t(row.setting)];
    return row.kind == Kind::choice ? row.choices[size_t(value)] : std::to_string(value);
  }

  std::string text_of(Setting setting) {
    std::lock_guard<std::mutex> lock(mutex);
    return texts[size_t(setting)];
  }

  std::array<std::atomic<int64_t>, row_count> numbers{};

private:
  void read_environment(const Row &row) {
    std::string variable = "ORCHARD_METAL_", message;
    for (const char *letter = row.name; *letter; letter++) variable += char(toupper(*letter));
    const char *value = getenv(variable.c_str());
    if (value && !set(row, value, message))
      fprintf(stderr, "orchard: %s: %s; using %s\n", variable.c_str(), message.c_str(), get(row).c_str());
  }

  std::mutex mutex;
  std::array<std::string, row_count> texts;
};

// Never destroyed: a worker may still read a setting while the process exits.
Settings &settings() {
  static Settings *instance = new Settings;
  return *instance;
}

const Row *find_row(const char *name) {
  for (const Row &row : rows)
    if (!strcmp(row.name, name)) return &row;
  return nullptr;
}

std::string quoted(const std::string &text) {
  std::string out = "\"";
  for (char letter : text) {
    char escape[8];
    snprintf(escape, sizeof escape, "\\u%04x", (unsigned char)letter);
    if ((unsigned char)letter < 0x20) out += escape;
    else out += letter == '"' || letter == '\\' ? std::string("\\") + letter : std::string(1, letter);
  }
  return out + '"';
}

struct Fault {
  uint32_t skip, count;
  int32_t code;
};
std::mutex fault_mutex;
std::map<std::string, Fault> &faults() {
  static auto *instance = new std::map<std::string, Fault>;
  return *instance;
}

} // namespace

int64_t setting_number(Setting setting) { return settings().numbers[size_t(setting)].load(std::memory_order_relaxed); }
std::string setting_text(Setting setting) { return settings().text_of(setting); }
char *copy_string(const std::string &text) { return strdup(text.c_str()); }

} // namespace mrt

using namespace mrt;

bool mrt_setting_set(const char *name, const char *value, char **message) {
  std::string problem;
  const Row *row = find_row(name);
  if (row && settings().set(*row, value, problem)) return true;
  if (!row) {
    problem = "no setting is named \"" + std::string(name) + "\"; expected one of";
    for (const Row &known : rows) problem += std::string(&known == rows ? " " : ", ") + known.name;
  }
  if (message) *message = copy_string(problem);
  return false;
}

char *mrt_setting_get(const char *name) {
  const Row *row = find_row(name);
  return row ? copy_string(settings().get(*row)) : nullptr;
}

char *mrt_settings_json(void) {
  std::string json = "{";
  for (const Row &row : rows) {
    std::string value = settings().get(row);
    json += (json.size() > 1 ? "," : "") + quoted(row.name) + ":" + (row.kind == Kind::number ? value : quoted(value));
  }
  return copy_string(json + "}");
}

void mrt_fault_inject(const char *kind, uint32_t skip, uint32_t count, int32_t code) {
  std::lock_guard<std::mutex> lock(fault_mutex);
  faults()[kind] = {skip, count, code};
}

bool mrt_fault_take(const char *kind, int32_t *code) {
  std::lock_guard<std::mutex> lock(fault_mutex);
  auto found = faults().find(kind);
  if (found == faults().end()) return false;
  Fault &fault = found->second;
  if (fault.skip) return fault.skip--, false;
  if (!fault.count) return false;
  fault.count--;
  if (code) *code = fault.code;
  return true;
}
