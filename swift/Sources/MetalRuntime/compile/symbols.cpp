#include "compile/symbols.h"

#include "compile/kernel_cache.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include <elf.h>

namespace mrt {
namespace {

// Symbols to which the compiler itself generates references: copies of memory, thread-local variables, and arithmetic
// that Metal's library uses. The other names are the bounds of the sections that contain a kernel's records.
constexpr std::string_view given[] = {"memcpy",
                                      "memmove",
                                      "memset",
                                      "__tls_get_addr",
                                      "_GLOBAL_OFFSET_TABLE_",
                                      "roundf",
                                      "fminf",
                                      "fmaxf",
                                      "fmaf",
                                      "sqrtf",
                                      "sqrt",
                                      "fmin",
                                      "fmax",
                                      "fma",
                                      "round"};
constexpr std::string_view sections[] = {"__start_mrt_", "__stop_mrt_"};

bool is_given(std::string_view name) {
  return std::find(std::begin(given), std::end(given), name) != std::end(given) ||
         std::any_of(std::begin(sections), std::end(sections),
                     [&](std::string_view prefix) { return name.substr(0, prefix.size()) == prefix; });
}

template <typename T> bool at(const std::string &file, uint64_t offset, T &value) {
  if (offset > file.size() || file.size() - offset < sizeof(T)) return false;
  memcpy(&value, file.data() + offset, sizeof(T));
  return true;
}

} // namespace

std::vector<std::string> undefined_symbols(const std::string &path) {
  const std::vector<std::string> unreadable{"?"};
  std::string file;
  Elf64_Ehdr header;
  if (!read_file(path, file) || !at(file, 0, header) || memcmp(header.e_ident, ELFMAG, SELFMAG)) return unreadable;
  std::vector<std::string> found;
  for (uint64_t index = 0; index < header.e_shnum; index++) {
    Elf64_Shdr section, names;
    if (!at(file, header.e_shoff + index * sizeof section, section)) return unreadable;
    if (section.sh_type != SHT_SYMTAB) continue;
    if (!at(file, header.e_shoff + section.sh_link * sizeof names, names)) return unreadable;
    for (uint64_t place = sizeof(Elf64_Sym); place < section.sh_size; place += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      if (!at(file, section.sh_offset + place, symbol)) return unreadable;
      const uint64_t name = names.sh_offset + symbol.st_name;
      if (symbol.st_shndx != SHN_UNDEF || name >= file.size()) continue;
      if (std::string text = file.c_str() + name; !is_given(text)) found.push_back(text);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

} // namespace mrt
