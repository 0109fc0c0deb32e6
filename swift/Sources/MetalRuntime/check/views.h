// Views of arguments that share memory. Metal's compiler assumes that no two arguments of a kernel overlap (MSL 5.2),
// so it may move or reuse a read through a const argument although another argument is written. From an address alone,
// the checker cannot tell through which argument a kernel reached it. So in a checked dispatch, a const argument whose
// buffer another argument may write gets separate addresses. The checker, which is called before each access, copies
// the bytes there.
#pragma once

#include "check/objects.h"

#include <string>
#include <vector>

namespace mrt::checker {

struct View {
  uintptr_t begin = 0, end = 0;            // the addresses that the kernel receives
  uintptr_t origin = 0;                    // the original address of `begin`
  const MrtParameter *parameter = nullptr; // the const parameter
  std::string writers;                     // the other parameters, quoted for a sentence: "'y'"
  bool is_written = false;                 // the kernel has cast const away

  bool contains(uintptr_t address) const { return address - begin < end - begin; }
  uintptr_t original(uintptr_t address) const { return address - begin + origin; }
};

class Views {
public:
  ~Views() { end_dispatch(); }
  // Replaces the addresses of arguments that need a view.
  void begin_dispatch(const Dispatch &dispatch, Objects &objects);
  void end_dispatch();

  View *find(uintptr_t address) {
    for (View &view : views_)
      if (view.contains(address)) return &view;
    return nullptr;
  }
  // Converts an address in a view to the original address.
  uintptr_t original(uintptr_t address) {
    const View *view = find(address);
    return view ? view->original(address) : address;
  }

  // Called before the kernel reads or writes these bytes of a view.
  static void fill(const View &view, uintptr_t address, size_t size);
  void will_write(const View &view, uintptr_t address, size_t size) {
    written_.push_back({view.original(address), address, size});
  }
  // Returns whether all recorded writes have been copied back.
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
