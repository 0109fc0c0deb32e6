// Replays recorded calls of the cpu backend's dylib. `bun run check:sanitize` builds this program and the dylib with
// sanitizers.
//
//   replay library=PATH state=PATH isa=NAME threads=N callers=N blas=PATH only=FUNCTION first=N FILE…
//
//   library   the dylib
//   state     a file that this program creates: see state.h
//   isa, threads, blas   the dylib's settings. Defaults: auto, 4, none
//   callers   threads that share the records; if more than one, they also use the dylib's allocator
//   only      the only function whose records are replayed
//   first     the number of the record to start with
//
// Each operand is in memory of exactly its size, which is allocated for each call. A call must return its recorded
// status. The output ends with counts; the exit status is 0 if no call failed.
#include "library.h"
#include "operands.h"
#include "records.h"
#include "state.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <sys/stat.h>
#include <thread>

namespace replay {
namespace {

std::string_view map_file(const std::string &path) {
  int file = open(path.c_str(), O_RDONLY);
  struct stat facts;
  if (file < 0 || fstat(file, &facts) != 0) throw std::runtime_error(path + " can't be read");
  auto bytes = static_cast<size_t>(facts.st_size);
  void *memory = bytes == 0 ? MAP_FAILED : mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (memory == MAP_FAILED) throw std::runtime_error(path + " is empty, or can't be read");
  return {static_cast<const char *>(memory), bytes};
}

// A block of the dylib's allocator, which is written to and freed while other threads allocate and free other blocks.
class Allocated {
public:
  Allocated(const Library &library, size_t bytes) : library_(library) {
    if (library.allocate(static_cast<double>(bytes), out_) != ORCHARD_CPU_OK) throw std::bad_alloc();
    std::memset(address(0), 1, bytes);
  }
  ~Allocated() { library_.collected(address(0), address(1)); }
  Allocated(const Allocated &) = delete;

private:
  void *address(int index) const { return reinterpret_cast<void *>(static_cast<uintptr_t>(out_[index])); }
  const Library &library_;
  double out_[2];
};

struct Counts {
  std::atomic<int64_t> replayed{0}, refused{0}, too_large{0}, other_status{0};
};

class Replay {
public:
  Replay(const Library &library, const std::vector<Record> &records, State &state)
      : library_(library), records_(records), state_(state) {}

  void run(int callers, int64_t first) {
    next_ = first;
    allocates_ = callers > 1;
    std::vector<std::thread> others;
    for (int caller = 1; caller < callers; caller++) others.emplace_back([this, caller] { call(caller); });
    call(0);
    for (std::thread &other : others) other.join();
  }

  const Counts &counts() const { return counts_; }

private:
  void call(int caller) {
    const auto count = static_cast<int64_t>(records_.size());
    for (int64_t number; (number = next_.fetch_add(1)) < count;) {
      const Record &record = records_[static_cast<size_t>(number)];
      state_.running[caller].begin(number, record.name);
      if (record.has_contents()) replay(record, number);
      else counts_.too_large++;
      state_.running[caller].end();
      state_.done++;
    }
  }

  void replay(const Record &record, int64_t number) {
    const std::string name(record.name);
    const Operands operands(record);
    const Block block(record);
    std::unique_ptr<Allocated> allocated;
    if (allocates_) allocated = std::make_unique<Allocated>(library_, 1 + static_cast<size_t>(number) % 5000);
    const int32_t status = library_.run(library_.ordinal(name), block.data(), block.bytes(), operands.addresses());
    counts_.replayed++;
    if (status != ORCHARD_CPU_OK) counts_.refused++;
    if (status == record.status || record.is_shortened()) return;
    counts_.other_status++;
    std::printf("record %lld (%s): expected the status %d, got %d%s\n", static_cast<long long>(number), name.c_str(),
                record.status, status, status == ORCHARD_CPU_OK ? "" : (": " + library_.last_error()).c_str());
  }

  const Library &library_;
  const std::vector<Record> &records_;
  State &state_;
  Counts counts_;
  std::atomic<int64_t> next_{0};
  bool allocates_ = false;
};

// The arguments `name=value`, with defaults, and the files.
struct Words {
  std::map<std::string, std::string> values{{"isa", "auto"},  {"threads", "4"}, {"callers", "1"},
                                            {"blas", "none"}, {"only", ""},     {"first", "0"}};
  std::vector<std::string> files;

  Words(int count, char **words) {
    for (int index = 1; index < count; index++) {
      const std::string word = words[index];
      const size_t at = word.find('=');
      if (at == std::string::npos) files.push_back(word);
      else values[word.substr(0, at)] = word.substr(at + 1);
    }
    if (values["library"].empty() || values["state"].empty() || files.empty())
      throw std::runtime_error("expected library=PATH state=PATH FILE…");
  }
};

void print(const char *what, int64_t count) { std::printf("%s: %lld\n", what, static_cast<long long>(count)); }

int run(int count, char **arguments) {
  Words words(count, arguments);
  const Library library(words.values["library"].c_str());
  State &state = open_state(words.values["state"]);
  for (const char *setting : {"isa", "threads", "blas"}) library.configure(setting, words.values[setting]);

  std::vector<Record> records;
  std::set<std::string, std::less<>> recorded;
  const std::string &only = words.values["only"];
  for (const std::string &file : words.files)
    for (Record &record : read_records(map_file(file))) {
      recorded.emplace(record.name);
      if (only.empty() || record.name == only) records.push_back(std::move(record));
    }
  for (const std::string &name : library.names())
    if (recorded.count(name) == 0) std::printf("not recorded: %s\n", name.c_str());
  state.total = static_cast<int64_t>(records.size());

  Replay replay(library, records, state);
  replay.run(std::clamp(std::stoi(words.values["callers"]), 1, most_callers), std::stoll(words.values["first"]));
  const Counts &counts = replay.counts();
  print("replayed", counts.replayed);
  print("refused", counts.refused);
  print("too large", counts.too_large);
  print("other status", counts.other_status);
  return counts.other_status == 0 ? 0 : 1;
}

} // namespace
} // namespace replay

int main(int count, char **arguments) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0); // output before a sanitizer's report must not be lost
  try {
    return replay::run(count, arguments);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "replay: %s\n", error.what());
    return 2;
  }
}
