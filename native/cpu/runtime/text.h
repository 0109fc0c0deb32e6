// Converts numbers and JSON to text, without the functions of the C library whose symbols changed with glibc 2.38.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

namespace orchard {

// Parses decimal digits; returns -1 if the text is not a number.
inline int whole_number(std::string_view text) {
  int value = -1;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem == std::errc() && end == text.data() + text.size() ? value : -1;
}

inline std::string decimal(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

// Returns the text as a JSON string.
inline std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    char escaped[8];
    if (static_cast<unsigned char>(c) < 0x20) std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
    else if (c == '"' || c == '\\') std::snprintf(escaped, sizeof escaped, "\\%c", c);
    else std::snprintf(escaped, sizeof escaped, "%c", c);
    result += escaped;
  }
  return result + "\"";
}

// Writes as much as fits, and returns the length of the whole text.
inline int32_t copy_text(std::string_view text, char *buffer, int32_t capacity) noexcept {
  size_t length = std::min(text.size(), static_cast<size_t>(std::max(capacity, 0)));
  if (length > 0) std::memcpy(buffer, text.data(), length);
  return static_cast<int32_t>(text.size());
}

} // namespace orchard
