// The cpu backend's dylib, opened by path, and its functions by name.
#pragma once

#include "../cpu/include/orchard_cpu.h"

#include <algorithm>
#include <dlfcn.h>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace replay {

constexpr int room = 29; // the number of operands of orchard_cpu_run29

class Library {
public:
  explicit Library(const char *path) : handle_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    if (!handle_) throw std::runtime_error(dlerror());
    find(abi_version, "orchard_cpu_abi_version");
    find(configure_, "orchard_cpu_configure");
    find(last_error_, "orchard_cpu_last_error");
    find(tables_, "orchard_cpu_tables");
    find(run_, "orchard_cpu_run29");
    find(allocate, "orchard_cpu_allocate");
    find(collected, "orchard_cpu_collected");
    if (abi_version() != ORCHARD_CPU_ABI_VERSION) throw std::runtime_error("the dylib has another ABI version");
    read_ordinals();
  }

  // Returns -1 if there is no such function.
  int32_t ordinal(const std::string &name) const {
    auto found = ordinals_.find(name);
    return found == ordinals_.end() ? -1 : found->second;
  }

  // In ordinal order.
  const std::vector<std::string> &names() const { return names_; }

  void configure(const char *name, const std::string &value) const {
    if (configure_(name, value.c_str()) != ORCHARD_CPU_OK)
      throw std::runtime_error(std::string(name) + " = " + value + ": " + last_error());
  }

  int32_t run(int32_t function, const void *block, int32_t block_bytes, void *const *o) const {
    return run_(function, block, block_bytes, o[0], o[1], o[2], o[3], o[4], o[5], o[6], o[7], o[8], o[9], o[10], o[11],
                o[12], o[13], o[14], o[15], o[16], o[17], o[18], o[19], o[20], o[21], o[22], o[23], o[24], o[25], o[26],
                o[27], o[28]);
  }

  std::string last_error() const { return text(last_error_); }

  decltype(&orchard_cpu_abi_version) abi_version;
  decltype(&orchard_cpu_allocate) allocate;
  decltype(&orchard_cpu_collected) collected;

private:
  template <class Function> void find(Function &function, const char *name) {
    function = reinterpret_cast<Function>(dlsym(handle_, name));
    if (!function) throw std::runtime_error(std::string("the dylib has no ") + name);
  }

  static std::string text(int32_t (*write)(char *, int32_t)) {
    std::string buffer(1 << 16, '\0');
    int32_t length = write(buffer.data(), static_cast<int32_t>(buffer.size()));
    buffer.resize(std::min(static_cast<size_t>(length), buffer.size()));
    return buffer;
  }

  // In the JSON of the tables, the functions are in the order of their ordinals and come before the lists of names.
  void read_ordinals() {
    const std::string json = text(tables_), key = "{ \"name\": \"";
    for (size_t at = json.find(key); at != std::string::npos; at = json.find(key, at)) {
      at += key.size();
      names_.push_back(json.substr(at, json.find('"', at) - at));
      ordinals_.emplace(names_.back(), static_cast<int32_t>(ordinals_.size()));
    }
  }

  void *handle_;
  std::vector<std::string> names_;
  std::map<std::string, int32_t> ordinals_;
  decltype(&orchard_cpu_configure) configure_;
  decltype(&orchard_cpu_last_error) last_error_;
  decltype(&orchard_cpu_tables) tables_;
  decltype(&orchard_cpu_run29) run_;
};

} // namespace replay
