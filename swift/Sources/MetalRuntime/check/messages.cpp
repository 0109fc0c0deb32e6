#include "check/messages.h"

namespace mrt::checker {
namespace {

std::string triple(const uint32_t value[3]) {
  return "(" + std::to_string(value[0]) + ", " + std::to_string(value[1]) + ", " + std::to_string(value[2]) + ")";
}

// "thread (1, 0, 0) of threadgroup (0, 0, 0), line 7:"
std::string opening(const Finding &finding) {
  const std::string line = finding.position.line ? ", line " + std::to_string(finding.position.line) : "";
  return thread_name(finding.party) + line + ":";
}

const char *space_name(Space space) { return space == Space::device ? "device" : "threadgroup"; }

// `x[0] += y` by several threads: a barrier cannot order them.
constexpr const char *accumulation =
    "; several threads add to it at once, which no barrier mends: use an atomic, or a reduction (simd_sum, or partial "
    "sums in threadgroup memory)";

constexpr const char *may_accumulate = "; where several threads add to it, use an atomic, or a reduction";

// `x[0] = y` by several threads.
constexpr const char *one_writer =
    "; several threads write it at once, and any of them may be the last: let one thread write it, give each its own "
    "element, or use an atomic";

constexpr const char *half_atomic = "; an atomic access and a plain one are not ordered: make both atomic";

constexpr const char *other_groups =
    ", and nothing orders the threadgroups of a dispatch; use atomics, give each threadgroup its own bytes, or split "
    "the work into two dispatches";

bool is_atomic(Action action) { return action == Action::atomic_read || action == Action::atomic_write; }
bool only_writes(Action action) { return action == Action::write; }

// Returns the advice for a race between two threads of one threadgroup.
std::string within_group(const std::string &barrier, Action action, Action other, bool is_statement) {
  if (is_atomic(action) != is_atomic(other))
    return half_atomic + (", or put " + barrier) + " between the two where one comes after the other";
  if (only_writes(action) && only_writes(other))
    return one_writer + ("; where they take turns, put " + barrier) + " between the two";
  return ", with no barrier between; put " + barrier +
         (is_statement ? " between the two, which in a loop are those of two turns" : " between the two");
}

std::string advice(Gap gap, Space space, Action action, Action other, bool is_statement) {
  const std::string flag = std::string("mem_flags::mem_") + space_name(space);
  const bool reads_one = action == Action::read && other == Action::write;
  const bool may_add = is_statement && (reads_one || (action == Action::write && other == Action::read));
  switch (gap) {
  case Gap::group:
    // In `s[i] += s[i + n]`, one thread reads an element to which another adds. It counts as an accumulation only if
    // both add to the same element.
    if (is_statement && action == Action::read_write && other == Action::write) return accumulation;
    return within_group("threadgroup_barrier(" + flag + ")", action, other, is_statement) +
           (may_add ? may_accumulate : "");
  case Gap::flag:
    return ", and the barrier between does not order " + std::string(space_name(space)) + " memory; give it " + flag;
  case Gap::groups:
    if (is_statement && action == Action::read_write) return accumulation;
    if (is_atomic(action) != is_atomic(other)) return half_atomic;
    if (only_writes(action) && only_writes(other)) return one_writer;
    return std::string(other_groups) + (may_add ? may_accumulate : "");
  case Gap::coherence:
    return ", and the fences between order only memory that is coherent across threadgroups; declare the kernel's "
           "parameter coherent(device)";
  case Gap::dispatches:
    return ", in another dispatch that may run at the same time; put memoryBarrier(scope: .buffers) between the two "
           "dispatches";
  case Gap::none: break;
  }
  return "";
}

} // namespace

std::string thread_name(const Party &party) {
  if (!party.known) return "an earlier thread";
  return "thread " + triple(party.thread) + " of threadgroup " + triple(party.group);
}

std::string bytes_of(const Object &object, uint64_t size) {
  std::string text =
      size == 1 ? "byte " + std::to_string(object.offset)
                : "bytes " + std::to_string(object.offset) + " to " + std::to_string(object.offset + int64_t(size) - 1);
  if (object.element_size > 1 && object.offset >= 0)
    text += " (element " + std::to_string(uint64_t(object.offset) / object.element_size) + ")";
  return text + " of " + object.name;
}

const char *verb(Action action) {
  static const char *const verbs[] = {"reads", "writes", "reads and writes", "atomically reads", "atomically writes"};
  return verbs[int(action)];
}

std::string race_message(const Finding &finding, Gap gap, Space space, Action action, Action other, uint64_t size) {
  const std::string line = finding.other_line ? " at line " + std::to_string(finding.other_line) : "";
  // A single statement that reads and writes: `y[0] += x`, or `y[0] = y[0] + x`. `y[i] = y[i + 1]` cannot be
  // distinguished from it.
  const bool is_statement = finding.position.line && finding.position.line == finding.other_line;
  return opening(finding) + " " + verb(action) + " " + bytes_of(finding.object, size) + ", which " +
         thread_name(finding.other) + " " + verb(other) + line + advice(gap, space, action, other, is_statement);
}

std::string bounds_message(const Finding &finding, Action action, uint64_t size, const std::string &why) {
  return opening(finding) + " " + verb(action) + " " + std::to_string(size) + (size == 1 ? " byte " : " bytes ") + why;
}

std::string uninitialized_message(const Finding &finding, Space space, uint64_t size) {
  return opening(finding) + " reads " + bytes_of(finding.object, size) + ", which nothing has written; " +
         (space == Space::device ? "fill the buffer, or write it in an earlier dispatch"
                                 : "threadgroup memory is not zeroed: write it first, and put a barrier between");
}

std::string unset_message(const Finding &finding) {
  return opening(finding) + " reads " + finding.object.name +
         ", which the thread has not written; variables of a thread start with arbitrary values: initialize it where "
         "it is declared";
}

std::string unwritten_message(const Finding &finding, uint64_t size) {
  return opening(finding) + " reads " + bytes_of(finding.object, size) +
         ", which the thread has not written; variables of a thread start with arbitrary values: write each element "
         "first, or initialize the array";
}

std::string constant_write_message(const Finding &finding, const char *parameter) {
  return opening(finding) + " writes to " + finding.object.name + ", which is bound to the `constant` parameter '" +
         parameter + "'; bind what is written to a `device` parameter";
}

std::string alias_message(const Finding &finding, const MrtParameter &parameter, const std::string &writers,
                          uint64_t size) {
  const std::string line = finding.other_line ? " at line " + std::to_string(finding.other_line) : "";
  const bool constant = parameter.space == MRT_SPACE_CONSTANT;
  return opening(finding) + " reads " + bytes_of(finding.object, size) + " through the `" +
         (constant ? "constant" : "device const") + "` argument '" + parameter.name + "', which " +
         thread_name(finding.other) + " has written through " + writers + line +
         "; Metal's compiler assumes that no two arguments share memory, and the read may give the old value: read it "
         "through " +
         writers + ", or bind other memory";
}

std::string misaligned_message(const Finding &finding, const char *type, uint32_t alignment) {
  return opening(finding) + " uses an address that is not a multiple of " + std::to_string(alignment) + " as " + type +
         (finding.object.name.empty()
              ? ""
              : ", at byte " + std::to_string(finding.object.offset) + " of " + finding.object.name) +
         "; align it, or use the packed_ type";
}

std::string subscript_message(const Finding &finding, uint64_t index, const char *type) {
  return opening(finding) + " uses the subscript " + std::to_string(int64_t(index)) + " of an array of type " + type +
         "; keep it below the array's length";
}

std::string absent_argument_message(const Finding &finding) {
  return opening(finding) +
         " reads an argument that its function constant leaves out: the value is undefined; read it under a "
         "condition on the constant, unless nothing uses it";
}

std::string texture_bounds_message(const Finding &finding, Action action, const std::string &where) {
  const std::string name = finding.object.label.empty() ? "" : " '" + finding.object.label + "'";
  return opening(finding) + " " + verb(action) + " outside of a texture" + name + ": " + where +
         (action == Action::write ? "; the write has no effect" : "; the value is 0") +
         ": compare the position with get_width() and its like";
}

// `problem` is an mrt::TensorProblem.
std::string tensor_message(const Finding &finding, mrt_u32 problem, long one, long other) {
  const std::string number = std::to_string(one), limit = std::to_string(other);
  switch (problem) {
  case 0:
    return opening(finding) + " slices a tensor from position " + number + " of a dimension of size " + limit +
           ": begin inside the tensor";
  case 1:
    return opening(finding) + " slices a tensor up to position " + number + " of a dimension of size " + limit +
           ": slice<…>() does not compare its sizes with the tensor's; use slice() without sizes at the edge";
  case 2:
    return opening(finding) + " multiplies " + number + " elements of a dimension for which a tensor has the size " +
           limit +
           ": the sizes of the descriptor and of the operands must agree; a K that is dynamic_extent is that of "
           "the operands";
  case 3:
    return opening(finding) + " multiplies element " + number + " of " + limit +
           " of a cooperative tensor, which the thread has not written: write every valid element, or load() it";
  case 4:
    return opening(finding) + " adds to element " + number + " of " + limit +
           " of a destination that the thread has not written: MSL does not say what it starts with; write zeros, or "
           "use mode::multiply";
  case 6:
    return opening(finding) + " refers to position " + number + " of a dimension of a tensor of size " + limit +
           ": compare it with get_extent(), or use load() and store(), which check it";
  default:
    return opening(finding) + " runs an operation of " + number + " SIMD-groups in a threadgroup of " + limit +
           ": execution_simdgroups<N> requires 32 N threads, of which all run it";
  }
}

std::string layout_message(const Finding &finding) {
  return opening(finding) +
         " uses thread_elements() of a simdgroup_matrix, whose layout over the lanes MSL leaves unspecified; use "
         "simdgroup_load and simdgroup_store where other hardware must give the same result";
}

} // namespace mrt::checker
