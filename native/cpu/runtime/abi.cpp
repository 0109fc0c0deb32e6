// The functions of orchard_cpu.h and orchard_cpu_memory.h that are not operations: errors, settings and memory.
#include "../blas.h"
#include "../include/orchard_cpu_memory.h"
#include "../isa.h"
#include "../lapack.h"
#include "../memory.h"
#include "../parallel.h"
#include "../status.h"
#include "retake.h"
#include "sets.h"
#include "text.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <string_view>

namespace orchard {
namespace {

constexpr double largest_whole = 9007199254740991; // 2^53 - 1

size_t to_bytes(double value, const char *what) {
  if (!(value >= 0 && value <= largest_whole && value == std::floor(value)))
    fail(ORCHARD_CPU_INVALID_ARGUMENT,
         std::string(what) + " must be a whole number of bytes, and is " + decimal(value));
  return static_cast<size_t>(value);
}

// The context of a block that an ArrayBuffer uses.
struct BlockContext {
  void *memory;
  size_t bytes;
  std::atomic<bool> is_live{true};

  void give_back() noexcept {
    if (is_live.exchange(false)) give_block_back(memory, bytes);
  }
};

void configure_isa(std::string_view value) {
  if (value == "auto") {
    if (!supports(best_isa()))
      fail(ORCHARD_CPU_UNSUPPORTED, "the dylib was built for another processor: this one has no instruction set that "
                                    "it has kernels for. In a clone, `bun run build` compiles them for all");
    return set_isa(best_isa());
  }
  for (size_t index = 0; index < isa_count; index++) {
    if (value != isa_names[index]) continue;
    Isa isa = static_cast<Isa>(index);
    if (!is_built(isa))
      fail(ORCHARD_CPU_UNSUPPORTED, "this build of the dylib has no kernels for " + std::string(value) +
                                        ": in a clone, `bun run build` compiles them for all instruction sets");
    if (!supports(isa)) fail(ORCHARD_CPU_UNSUPPORTED, "this processor has no " + std::string(value));
    return set_isa(isa);
  }
  std::string known = "auto";
  for (const char *name : isa_names) known += std::string(", ") + name;
  fail(ORCHARD_CPU_INVALID_ARGUMENT,
       "there is no instruction set \"" + std::string(value) + "\" here; there are: " + known);
}

void configure_threads(std::string_view value) {
  int count = value == "auto" ? available_processors() : whole_number(value);
  if (count < 1 || count > 4096)
    fail(ORCHARD_CPU_INVALID_ARGUMENT,
         "threads takes a whole number from 1 to 4096, or auto; it is \"" + std::string(value) + "\"");
  set_thread_count(count);
}

void configure_products(std::string_view value) {
  if (value == "table") return set_products_by(ProductsBy::table);
  if (value == "own") return set_products_by(ProductsBy::own);
  if (value == "blas") return set_products_by(ProductsBy::blas);
  fail(ORCHARD_CPU_INVALID_ARGUMENT, "products takes table, own or blas; it is \"" + std::string(value) + "\"");
}

void configure(std::string_view name, std::string_view value) {
  if (name == "isa") return configure_isa(value);
  if (name == "threads") return configure_threads(value);
  if (name == "blas") return set_blas_candidates(value);
  if (name == "products") return configure_products(value);
  fail(ORCHARD_CPU_INVALID_ARGUMENT,
       "there is no setting \"" + std::string(name) + "\"; there are: isa, threads, blas, products");
}

std::string supported_isas() {
  std::string list;
  for (size_t index = 0; index < isa_count; index++)
    if (supports(static_cast<Isa>(index))) list += (list.empty() ? "" : ", ") + quoted(isa_names[index]);
  return list;
}

std::string describe() {
  const Blas *found = blas();
  std::string name =
      found ? "{ \"name\": " + quoted(found->name) + ", \"path\": " + quoted(found->path) + " }" : "null";
  LapackReport lapack = lapack_report();
  std::string problems = lapack.problem.empty() ? "" : quoted(lapack.problem);
  for (const std::string &problem : blas_problems()) problems += (problems.empty() ? "" : ", ") + quoted(problem);
  return "{ \"isa\": " + quoted(isa_names[static_cast<int>(current_isa())]) + ", \"isas\": [" + supported_isas() +
         "], \"threads\": " + std::to_string(thread_count()) + ", \"blas\": " + name +
         ", \"lapack\": " + (lapack.name.empty() ? "null" : quoted(lapack.name)) + ", \"blasProblems\": [" + problems +
         "] }";
}

} // namespace

namespace {
thread_local std::string message;
}
void set_last_error(const char *text) noexcept {
  try {
    message = text;
  } catch (...) {
    message.clear();
  }
}
const std::string &last_error() noexcept { return message; }

} // namespace orchard

using namespace orchard;

int32_t orchard_cpu_abi_version(void) { return ORCHARD_CPU_ABI_VERSION; }

int32_t orchard_cpu_last_error(char *buffer, int32_t capacity) { return copy_text(last_error(), buffer, capacity); }

int32_t orchard_cpu_configure(const char *name, const char *value) {
  return guarded([&] { configure(name, value); });
}

int32_t orchard_cpu_describe(char *buffer, int32_t capacity) {
  int32_t length = 0;
  guarded([&] { length = copy_text(describe(), buffer, capacity); });
  return length;
}

int32_t orchard_cpu_allocate(double bytes, double *out) {
  return guarded([&] {
    size_t count = to_bytes(bytes, "the size of a block");
    BlockContext *context = new BlockContext{nullptr, count};
    try {
      context->memory = take_block(count);
    } catch (...) {
      delete context;
      throw;
    }
    out[0] = static_cast<double>(reinterpret_cast<uintptr_t>(context->memory));
    out[1] = static_cast<double>(reinterpret_cast<uintptr_t>(context));
  });
}

int32_t orchard_cpu_release(void *context) {
  return guarded([&] {
    if (!context) fail(ORCHARD_CPU_INVALID_ARGUMENT, "the context of a block is null");
    static_cast<BlockContext *>(context)->give_back();
  });
}

int32_t orchard_cpu_retake(void *context) {
  BlockContext *block = static_cast<BlockContext *>(context);
  if (!block || block->is_live.load() || !retake_block(block->memory, block->bytes)) return 0;
  block->is_live.store(true);
  return 1;
}

void orchard_cpu_collected(void *, void *context) {
  BlockContext *block = static_cast<BlockContext *>(context);
  block->give_back();
  delete block;
}

void *orchard_cpu_collector(void) { return reinterpret_cast<void *>(&orchard_cpu_collected); }

int32_t orchard_cpu_set_memory_limit(double bytes) {
  return guarded([&] { set_memory_limit(to_bytes(bytes, "the memory limit")); });
}

int32_t orchard_cpu_set_cache_limit(double bytes) {
  return guarded([&] { set_cache_limit(to_bytes(bytes, "the cache limit")); });
}

int32_t orchard_cpu_trim(void) {
  return guarded([] { trim_blocks(); });
}

int32_t orchard_cpu_fail_allocations(int32_t count) {
  return guarded([&] { refuse_allocations(count); });
}

int32_t orchard_cpu_statistics(double *out) {
  return guarded([&] {
    MemoryStatistics s = memory_statistics();
    const size_t figures[ORCHARD_CPU_STATISTICS] = {s.live_bytes,   s.live_blocks, s.cached_bytes, s.cached_blocks,
                                                    s.peak_bytes,   s.allocations, s.cache_hits,   s.refusals,
                                                    s.memory_limit, s.cache_limit};
    std::copy(std::begin(figures), std::end(figures), out);
  });
}

int32_t orchard_cpu_reset_peak(void) {
  reset_peak();
  return ORCHARD_CPU_OK;
}
