// The findings, in an ordered list that counts equal ones (same kind, severity, kernel, lines and buffer); and misuse
// of the host interface, which is a finding that also ends the call.
#include "include/metal_runtime.h"
#include "support/announce.h"
#include "support/json.h"
#include "support/settings.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace mrt {
namespace {

std::string text_of(const char *text) { return text ? text : ""; }

// A finding that owns its strings.
struct Kept {
  mrt_finding finding;
  std::string kind, severity, message, kernel, file, buffer;
  bool has_kernel, has_file, has_buffer;

  explicit Kept(const mrt_finding &given)
      : finding(given), kind(text_of(given.kind)), severity(given.severity ? given.severity : "error"),
        message(text_of(given.message)), kernel(text_of(given.kernel)), file(text_of(given.file)),
        buffer(text_of(given.buffer)), has_kernel(given.kernel), has_file(given.file), has_buffer(given.buffer) {
    if (finding.count == 0) finding.count = 1;
  }
};

std::string to_json(const Kept &kept) {
  JsonObject object;
  const mrt_finding &finding = kept.finding;
  object.text("kind", kept.kind);
  object.text("severity", kept.severity);
  object.text("message", kept.message);
  object.text("kernel", kept.kernel, kept.has_kernel);
  object.text("file", kept.file, kept.has_file);
  object.number("line", finding.line);
  object.number("column", finding.column);
  object.triple("threadgroup", finding.threadgroup);
  object.triple("thread", finding.thread);
  object.triple("other_threadgroup", finding.other_threadgroup);
  object.triple("other_thread", finding.other_thread);
  object.number("other_line", finding.other_line);
  object.text("buffer", kept.buffer, kept.has_buffer);
  object.number("offset", finding.offset);
  object.number("count", finding.count);
  return object.finish();
}

class Findings {
public:
  // Returns whether the finding has been printed, now or before.
  bool add(const mrt_finding &finding) {
    std::lock_guard lock(mutex_);
    // A finding without a source location, such as a misuse, is identified by its message.
    const char *what = finding.line == 0 && !finding.buffer ? finding.message : finding.buffer;
    Key key{text_of(finding.kind),
            finding.severity ? finding.severity : "error",
            text_of(finding.kernel),
            text_of(finding.file),
            finding.line,
            finding.other_line,
            text_of(what)};
    auto [known, fresh] = index_.emplace(std::move(key), kept_.size());
    if (!fresh) {
      if (known->second < kept_.size()) kept_[known->second].finding.count += finding.count ? finding.count : 1;
      return announced_.count(known->first); // beyond the limit, it is already counted
    }
    // Recorded once, even if the list is cleared.
    if (recorded_.size() < size_t(setting_number(Setting::max_findings)) && recorded_.insert(known->first).second)
      record(to_json(Kept(finding)));
    if (announced_.size() < size_t(setting_number(Setting::max_findings)) && !announced_.count(known->first) &&
        announce(finding))
      announced_.insert(known->first);
    bool error = !finding.severity || strcmp(finding.severity, "error") == 0;
    errors_ += error;
    if (kept_.size() < size_t(setting_number(Setting::max_findings))) kept_.emplace_back(finding);
    else known->second = SIZE_MAX;
    return announced_.count(known->first);
  }

  size_t errors() {
    std::lock_guard lock(mutex_);
    return errors_;
  }

  std::string json(bool clear) {
    std::lock_guard lock(mutex_);
    std::string list = "[";
    for (const Kept &kept : kept_) list += (list.size() > 1 ? ",\n " : "") + to_json(kept);
    if (clear) {
      kept_.clear();
      index_.clear();
      errors_ = 0;
    }
    return list + "]";
  }

private:
  using Key = std::tuple<std::string, std::string, std::string, std::string, uint32_t, uint32_t, std::string>;
  std::mutex mutex_;
  std::vector<Kept> kept_;
  std::map<Key, size_t> index_; // position in kept_, or SIZE_MAX beyond the limit
  std::set<Key> announced_, recorded_;
  size_t errors_ = 0;
};

Findings &findings() {
  static Findings &instance = *new Findings;
  return instance;
}

struct Misuse {
  std::mutex mutex;
  mrt_misuse_handler handler = nullptr;
  void *context = nullptr;
};

Misuse &misuse() {
  static Misuse &instance = *new Misuse;
  return instance;
}

} // namespace
} // namespace mrt

void mrt_finding_add(const mrt_finding *finding) { mrt::findings().add(*finding); }
size_t mrt_findings_count(void) { return mrt::findings().errors(); }
char *mrt_findings_json(bool clear) { return mrt::copy_string(mrt::findings().json(clear)); }

void mrt_misuse(const char *sentence) {
  mrt_finding finding = {};
  finding.kind = "misuse";
  finding.message = sentence;
  const bool announced = mrt::findings().add(finding);
  mrt::Misuse &misuse = mrt::misuse();
  std::unique_lock lock(misuse.mutex);
  auto handler = misuse.handler;
  void *context = misuse.context;
  lock.unlock();
  if (handler) return handler(sentence, context);
  if (!mrt::setting_flag(mrt::Setting::abort_on_misuse)) return;
  if (!announced) fprintf(stderr, "%s\n", sentence);
  abort();
}

void mrt_misuse_set_handler(mrt_misuse_handler handler, void *context) {
  std::lock_guard lock(mrt::misuse().mutex);
  mrt::misuse().handler = handler;
  mrt::misuse().context = context;
}
