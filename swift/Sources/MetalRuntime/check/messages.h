// The checker's messages: what is wrong, and how to fix it.
#pragma once

#include "check/checker_report.h"

namespace mrt::checker {

std::string thread_name(const Party &party);               // "thread (1, 0, 0) of threadgroup (2, 0, 0)"
std::string bytes_of(const Object &object, uint64_t size); // "bytes 4 to 7 (element 1) of buffer 'x'"

enum class Action { read, write, read_write, atomic_read, atomic_write };
const char *verb(Action action); // "reads", …

std::string race_message(const Finding &finding, Gap gap, Space space, Action action, Action other, uint64_t size);
std::string bounds_message(const Finding &finding, Action action, uint64_t size, const std::string &why);
std::string uninitialized_message(const Finding &finding, Space space, uint64_t size);
// The message for an unwritten element of a thread's array.
std::string unwritten_message(const Finding &finding, uint64_t size);
// The same for a variable that is not an array.
std::string unset_message(const Finding &finding);
std::string constant_write_message(const Finding &finding, const char *parameter);
// `writers` are the quoted names of the arguments through which the bytes may have been written.
std::string alias_message(const Finding &finding, const MrtParameter &parameter, const std::string &writers,
                          uint64_t size);
std::string misaligned_message(const Finding &finding, const char *type, uint32_t alignment);
std::string subscript_message(const Finding &finding, uint64_t index, const char *type);
std::string absent_argument_message(const Finding &finding);
std::string texture_bounds_message(const Finding &finding, Action action, const std::string &where);
std::string tensor_message(const Finding &finding, mrt_u32 problem, long one, long other);
std::string layout_message(const Finding &finding);

} // namespace mrt::checker
