// Writes the JSON objects in which the C interface returns findings and counters.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace mrt {

class JsonObject {
public:
  void text(const char *name, const std::string &value, bool present = true) {
    start(name);
    if (present) append_quoted(value);
    else json_ += "null";
  }
  void number(const char *name, uint64_t value) {
    start(name);
    json_ += std::to_string(value);
  }
  void triple(const char *name, const uint32_t (&value)[3]) {
    start(name);
    json_ += '[' + std::to_string(value[0]) + ',' + std::to_string(value[1]) + ',' + std::to_string(value[2]) + ']';
  }
  void object(const char *name, JsonObject &value) {
    start(name);
    json_ += value.finish();
  }
  std::string finish() { return (json_.empty() ? "{" : json_) + '}'; }

private:
  void start(const char *name) {
    json_ += json_.empty() ? '{' : ',';
    append_quoted(name);
    json_ += ':';
  }
  void append_quoted(const std::string &value) {
    json_ += '"';
    for (unsigned char c : value) {
      if (c == '"' || c == '\\') {
        json_ += '\\';
        json_ += char(c);
      } else if (c >= 0x20) json_ += char(c);
      else {
        char escape[8];
        snprintf(escape, sizeof escape, "\\u%04x", c);
        json_ += escape;
      }
    }
    json_ += '"';
  }
  std::string json_;
};

} // namespace mrt
