// Views of arguments that share memory. Metal's compiler assumes that no two arguments of a kernel overlap (MSL 5.2),
// so it may keep or move a read through a const argument although another argument is written. An address alone does
// not tell through which argument a kernel reached it. So in a checked dispatch, a const argument whose buffer another
// argument may write gets separate addresses. The checker, which is called before each access, copies the bytes there.
#pragma once

#include "check/objects.h"

#include <string>
#include <vector>

namespace mrt::checker {

struct View {
  uintptr_t begin = 0, end = 0;            // the addresses that the kernel gets
  uintptr_t origin = 0;                    // the address that `begin` stands for
  const MrtParameter *parameter = nullptr; // the const one
  std::string writers;                     // the others, for a sentence: "'y'"
  bool is_written = false;                 // the kernel has cast const away

  bool contains(uintptr_t address) const { return address - begin < end - begin; }
  uintptr_t original(uintptr_t address) const { return address - begin + origin; }
};

class Views {
public:
  ~Views() { end_dispatch(); }
  // Replaces the addresses of arguments that get a view.
  void begin_dispatch(const Dispatch &dispatch, Objects &objects);
  void end_dispatch();

  View *find(uintptr_t address) {
    for (View &view : views_)
      if (view.contains(address)) return &view;
    return nullptr;
  }
  // Translates an address of the kernel to that of the memory itself.
  uintptr_t original(uintptr_t address) {
    const View *view = find(address);
    return view ? view->original(address) : address;
  }

  // Called when the kernel is about to read or write these bytes of a view.
  static void fill(const View &view, uintptr_t address, size_t size);
  void will_write(const View &view, uintptr_t address, size_t size) {
    written_.push_back({view.original(address), address, size});
  }
  // Whether writes have happened by now.
  bool is_settled() const { return written_.empty(); }
  void settle();

private:
  struct Written {
    uintptr_t original, address;
    size_t size;
  };
  std::vector<View> views_;
  std::vector<Written> written_;
};

} // namespace mrt::checker
