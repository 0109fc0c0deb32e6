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

#include <cstring>

namespace mrt {
namespace {

bool same_text(const char *one, const char *other) { return one == other || (one && other && strcmp(one, other) == 0); }

bool same_operation(const MrtCollective &one, const MrtCollective &other) {
  return one.line == other.line && one.column == other.column && one.resolve == other.resolve &&
         one.kind == other.kind && same_text(one.operation, other.operation) && same_text(one.file, other.file);
}

bool comes_before(const Thread &one, const Thread &other) {
  if (!same_text(one.collective->file, other.collective->file)) return one.return_address < other.return_address;
  if (one.collective->line != other.collective->line) return one.collective->line < other.collective->line;
  if (one.collective->column != other.collective->column) return one.collective->column < other.collective->column;
  return one.return_address < other.return_address;
}

template <typename Visit> void for_each_lane(mrt_u32 lanes, Visit visit) {
  for (; lanes; lanes &= lanes - 1) visit(mrt_u32(__builtin_ctz(lanes)));
}

// An exchange, and the source location for a finding about it.
struct Rendezvous : MrtExchange {
  const Launch *launch;
  const Thread *lanes; // the SIMD-group's first thread
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
    const Thread &thread = meeting.lanes[lane];
    if (memcmp(first.uniform, thread.collective->uniform, first.uniform_size) != 0) different = &thread;
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
  self->collective = collective;
  self->return_address = static_cast<const char *>(return_address);
  simdgroup_->at_collective |= 1u << self->thread_index_in_simdgroup;
  block(self);
}

void GroupRunner::carry_out_collective(SimdGroup &simdgroup) {
  stop_if_asked();
  Thread *lanes = &thread_at(simdgroup, 0);
  const Thread *leader = &lanes[__builtin_ctz(simdgroup.at_collective)];
  for_each_lane(simdgroup.at_collective, [&](mrt_u32 lane) {
    if (comes_before(lanes[lane], *leader)) leader = &lanes[lane];
  });

  Rendezvous meeting;
  meeting.active = 0;
  for_each_lane(simdgroup.at_collective, [&](mrt_u32 lane) {
    if (same_operation(*lanes[lane].collective, *leader->collective)) meeting.active |= 1u << lane;
  });
  meeting.launch = launch_;
  meeting.lanes = lanes;
  meeting.operation = lanes[__builtin_ctz(meeting.active)].collective;
  meeting.active_count = mrt_u32(__builtin_popcount(meeting.active));
  meeting.lane_count = mrt_u32(__builtin_popcount(simdgroup.lanes));
  meeting.uniform = meeting.operation->uniform;
  meeting.inactive_lane = report_inactive_lane;
  meeting.nonuniform = report_nonuniform;
  mrt_u32 position = 0;
  for (mrt_u32 index = 0; index < MRT_SIMD_WIDTH; index++) {
    bool active = meeting.active >> index & 1;
    meeting.input[index] = active ? lanes[index].collective->input : nullptr;
    meeting.output[index] = active ? lanes[index].collective->output : nullptr;
    mrt_u32 lane = simdgroup.order[index];
    if (meeting.active >> lane & 1) meeting.order[position++] = mrt_u8(lane);
  }

  counters_.simd_operations++;
  check_uniform(meeting);
  check_matrix(meeting);
  if (launch_->checked)
    checker::simd_barrier(&group_, simdgroup.index, meeting.active,
                          meeting.operation->kind == MRT_COLLECTIVE_BARRIER ? meeting.operation->flags
                                                                            : mrt_u32(MRT_MEM_NONE));
  // A fault in the operation is attributed to the lowest active lane. Copies between the lanes' stacks do not count as
  // traffic: the checker ignores them, because the module's current thread is null.
  enter(&lanes[__builtin_ctz(meeting.active)], fiber_);
  *module_current_ = nullptr;
  if (meeting.operation->resolve) meeting.operation->resolve(&meeting);
  simdgroup.at_collective &= ~meeting.active;
  simdgroup.runnable |= meeting.active;
  simdgroup.cursor = 0;
}

} // namespace mrt
