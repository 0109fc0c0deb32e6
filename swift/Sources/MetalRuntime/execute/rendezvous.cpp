// Executes collective operations when the lanes of a SIMD-group have arrived.
//
// On a GPU the lanes of a SIMD-group run in lockstep, and after a branch that only some of them took they reconverge
// where its arms join. Here each lane runs independently until it waits. Once no lane can run, these rules determine
// which lanes are active together:
//   - lanes that wait at the same operation (same location in the source, same operation) are together;
//   - if lanes wait at different operations, those earlier in the program go first, so that they can catch up with the
//     others. The order is by line and column within one file, and by the address of the call between files;
//   - lanes that have ended or wait at a threadgroup barrier are not active.
// Limits: an operation in a function that both arms of a branch call counts as one operation. If diverged lanes wait in
// different functions of one file, the functions' lines determine the order instead of the calls.
#include "check/checker.h"
#include "execute/report.h"
#include "execute/scheduler.h"

#include <algorithm>
#include <cstring>

namespace mrt {
namespace {

bool same_text(const char *one, const char *other) { return one == other || (one && other && strcmp(one, other) == 0); }

bool same_operation(const MrtCollective &one, const MrtCollective &other) {
  return one.line == other.line && one.column == other.column && one.resolve == other.resolve &&
         one.kind == other.kind && same_text(one.operation, other.operation) && same_text(one.file, other.file);
}

bool comes_before(const SimdGroup &simdgroup, mrt_u32 lane, mrt_u32 other_lane) {
  const MrtCollective &one = *simdgroup.collectives[lane], &other = *simdgroup.collectives[other_lane];
  if (same_text(one.file, other.file)) {
    if (one.line != other.line) return one.line < other.line;
    if (one.column != other.column) return one.column < other.column;
  }
  return simdgroup.return_addresses[lane] < simdgroup.return_addresses[other_lane];
}

// The usual case of same_operation, without comparing text.
bool is_identical(const MrtCollective &one, const MrtCollective &other) {
  return one.line == other.line && one.column == other.column && one.resolve == other.resolve &&
         one.kind == other.kind && one.operation == other.operation && one.file == other.file;
}

template <typename Visit> void for_each_lane(mrt_u32 lanes, Visit visit) {
  for (; lanes; lanes &= lanes - 1) visit(mrt_u32(__builtin_ctz(lanes)));
}

// An exchange, and the source location for a finding about it.
struct Rendezvous : MrtExchange {
  const Launch *launch;
  const Thread *lanes; // the SIMD-group's first thread
  const SimdGroup *simdgroup;
  const MrtCollective *operation;

  std::string location() const {
    return std::string(operation->operation) + " at " + describe_line(operation->file, operation->line);
  }
  Report report(const char *kind, mrt_u32 lane) const {
    return {kind, launch->kernel(), operation->file, operation->line, &lanes[lane]};
  }
};

void report_inactive_lane(MrtExchange *exchange, mrt_u32 lane, mrt_u32 from) {
  auto &meeting = *static_cast<Rendezvous *>(exchange);
  if (!meeting.launch->detect) return; // undefined, but harmless if the result is unused: only the checker reports it
  const char *why = from < meeting.lane_count ? "is not active there" : "does not exist";
  add_report(meeting.report("inactive-lane", lane), describe_thread(meeting.lanes[lane]) + " reads lane " +
                                                        std::to_string(from) + " in " + meeting.location() +
                                                        ", but that lane " + why);
}

void report_nonuniform(MrtExchange *exchange, const char *parameter) {
  auto &meeting = *static_cast<Rendezvous *>(exchange);
  mrt_u32 lane = mrt_u32(__builtin_ctz(meeting.active));
  add_report(meeting.report("nonuniform-argument", lane),
             "the parameter '" + std::string(parameter) + "' of " + meeting.location() +
                 " must be the same in all lanes of a SIMD-group, and is not");
}

void check_uniform(Rendezvous &meeting) {
  const MrtCollective &first = *meeting.operation;
  if (!first.uniform) return;
  const Thread *different = nullptr;
  for_each_lane(meeting.active, [&](mrt_u32 lane) {
    if (memcmp(first.uniform, meeting.simdgroup->collectives[lane]->uniform, first.uniform_size) != 0)
      different = &meeting.lanes[lane];
  });
  if (!different) return;
  Report report = meeting.report("nonuniform-argument", mrt_u32(__builtin_ctz(meeting.active)));
  report.other = different;
  add_report(report, "a parameter of " + meeting.location() +
                         " must be the same in all lanes of a SIMD-group, but differs between " +
                         describe_thread(*report.thread) + " and " + describe_thread(*different));
}

void check_matrix(Rendezvous &meeting) {
  if (meeting.operation->kind != MRT_COLLECTIVE_MATRIX || meeting.active == ~0u) return;
  add_report(meeting.report("nonuniform-matrix", mrt_u32(__builtin_ctz(meeting.active))),
             meeting.location() + " must be reached by all 32 lanes of a SIMD-group, but only " +
                 std::to_string(meeting.active_count) + " of them reached it, " +
                 describe_thread(meeting.lanes[__builtin_ctz(meeting.active)]) + " among them");
}

} // namespace

void GroupRunner::wait_at_collective(const MrtCollective *collective, const void *return_address) {
  Thread *self = running_;
  SimdGroup &simdgroup = *simdgroup_;
  const mrt_u32 lane = self->thread_index_in_simdgroup;
  if (!simdgroup.at_collective) {
    simdgroup.first_arrival = collective;
    simdgroup.may_differ = false;
  } else if (!simdgroup.may_differ) {
    simdgroup.may_differ = !is_identical(*collective, *simdgroup.first_arrival);
  }
  simdgroup.collectives[lane] = collective;
  simdgroup.return_addresses[lane] = static_cast<const char *>(return_address);
  simdgroup.inputs[lane] = collective->input;
  simdgroup.outputs[lane] = collective->output;
  simdgroup.at_collective |= 1u << lane;
  block(self);
}

// Returns the waiting lanes that are active together.
static mrt_u32 active_lanes(const SimdGroup &simdgroup) {
  if (!simdgroup.may_differ) return simdgroup.at_collective;
  mrt_u32 leader = mrt_u32(__builtin_ctz(simdgroup.at_collective));
  for_each_lane(simdgroup.at_collective, [&](mrt_u32 lane) {
    if (comes_before(simdgroup, lane, leader)) leader = lane;
  });
  mrt_u32 active = 0;
  for_each_lane(simdgroup.at_collective, [&](mrt_u32 lane) {
    if (same_operation(*simdgroup.collectives[lane], *simdgroup.collectives[leader])) active |= 1u << lane;
  });
  return active;
}

void GroupRunner::carry_out_collective(SimdGroup &simdgroup) {
  stop_if_asked();
  Thread *lanes = &thread_at(simdgroup, 0);
  Rendezvous meeting;
  meeting.active = active_lanes(simdgroup);
  meeting.launch = launch_;
  meeting.lanes = lanes;
  meeting.simdgroup = &simdgroup;
  meeting.operation = simdgroup.collectives[size_t(__builtin_ctz(meeting.active))];
  meeting.active_count = mrt_u32(__builtin_popcount(meeting.active));
  meeting.lane_count = mrt_u32(__builtin_popcount(simdgroup.lanes));
  meeting.uniform = meeting.operation->uniform;
  meeting.inactive_lane = report_inactive_lane;
  meeting.nonuniform = report_nonuniform;
  std::copy(simdgroup.inputs.begin(), simdgroup.inputs.end(), meeting.input);
  std::copy(simdgroup.outputs.begin(), simdgroup.outputs.end(), meeting.output);
  for_each_lane(~meeting.active, [&](mrt_u32 lane) { meeting.input[lane] = meeting.output[lane] = nullptr; });
  mrt_u32 position = 0;
  for (mrt_u32 index = 0; index < MRT_SIMD_WIDTH; index++) {
    const mrt_u32 lane = simdgroup.order[index];
    meeting.order[position] = mrt_u8(lane);
    position += meeting.active >> lane & 1;
    if (position == meeting.active_count) break;
  }

  counters_.simd_operations++;
  check_uniform(meeting);
  check_matrix(meeting);
  if (launch_->checked)
    checker::simd_barrier(&group_, simdgroup.index, meeting.active,
                          meeting.operation->kind == MRT_COLLECTIVE_BARRIER ? meeting.operation->flags
                                                                            : mrt_u32(MRT_MEM_NONE));
  // A fault in the operation is attributed to the lowest active lane. Copies between the lanes' stacks do not count as
  // traffic: the checker ignores them, because the module's current thread is null, and its moment 0.
  enter(&lanes[__builtin_ctz(meeting.active)], fiber_);
  *module_current_ = nullptr;
  if (moment_) *moment_ = 0;
  if (meeting.operation->resolve) meeting.operation->resolve(&meeting);
  simdgroup.at_collective &= ~meeting.active;
  simdgroup.may_differ = simdgroup.at_collective; // the first arrival may be among those that continue
  simdgroup.runnable |= meeting.active;
  simdgroup.cursor = 0;
}

} // namespace mrt
