// The checker's findings in a dispatch: one for each mistake, with the number of times it occurred.
#pragma once

#include "check/race.h"
#include "check/shadow.h"
#include "check/source_lines.h"

#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

namespace mrt::checker {

// The source location of an access: a program counter, or for an atomic an index into the table of atomic sites.
struct Location {
  Site site = 0;
  bool atomic = false;
  uint64_t module_base = 0;
};

// The object that an access touches.
struct Object {
  std::string name;   // its kind and name, for a sentence: "buffer 'x'"
  std::string label;  // as in mrt_finding::buffer
  int64_t offset = 0; // bytes from its start, negative before it
  uint64_t length = 0;
  uint32_t element_size = 0;      // 0: unknown
  const void *identity = nullptr; // findings of one kind about the same object and lines are merged
};

struct Finding {
  const char *kind = nullptr, *severity = "error";
  std::string message; // empty: not yet written
  SourcePosition position;
  uint32_t other_line = 0;
  Party party, other;
  Object object;
  uint64_t count = 0;
  bool is_told = false;         // the compiler has already reported it
  bool values_compared = false; // a race between writes, of severity "note" as long as all wrote the same value
};

class Report {
public:
  void begin_dispatch(const std::string &kernel);
  void end_dispatch(); // passes all findings to the runtime

  // Returns the finding of this kind about this object at these locations (in either order), and increments its count.
  // The message of a new finding is empty.
  Finding &find(const char *kind, const void *identity, Location at, Location other);

  // The locations of atomics have a file and line instead of a program counter.
  Site atomic_site(const char *file, uint32_t line);
  SourcePosition position(Location location) const;

private:
  struct Key {
    const char *kind;
    const void *identity;
    uint64_t locations;
    bool operator==(const Key &other) const {
      return kind == other.kind && identity == other.identity && locations == other.locations;
    }
  };
  struct Hash {
    size_t operator()(const Key &key) const {
      return (size_t(key.kind) * 31 ^ size_t(key.identity) ^ key.locations) * 0x9e3779b97f4a7c15u >> 7;
    }
  };

  std::string kernel_;
  std::deque<Finding> findings_;
  std::unordered_map<Key, Finding *, Hash> known_;
  std::vector<SourcePosition> atomic_sites_;
  std::unordered_map<std::string, Site> atomic_numbers_;
};

} // namespace mrt::checker
