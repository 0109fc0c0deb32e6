#include "gpu/graph.h"

#include "gpu/driver.h"
#include "support/settings.h"

#include <algorithm>
#include <cstring>

namespace mrt {
namespace {

constexpr size_t fewest_launches = 4; // fewer are issued in about the same time
constexpr size_t most_graphs = 4;     // of a family
constexpr size_t most_families = 256;
constexpr size_t least_room = 4096; // bytes

class Hash {
public:
  void add(uint64_t word) {
    value_ = (value_ ^ word) * 0x9e3779b97f4a7c15; // 2^64 divided by the golden ratio
    value_ ^= value_ >> 32;
  }
  uint64_t value() const { return value_; }

private:
  uint64_t value_ = 0;
};

const uint8_t *parameters_of(const GpuSequence &sequence, const GpuLaunch &launch) {
  return sequence.parameters.data() + launch.parameters;
}

bool has_same_shape(const GpuLaunch &one, const GpuLaunch &other) {
  return one.function == other.function && one.staged == other.staged &&
         one.threadgroup_bytes == other.threadgroup_bytes && one.parameter_bytes == other.parameter_bytes &&
         std::equal(one.groups, one.groups + 3, other.groups) &&
         std::equal(one.threads, one.threads + 3, other.threads);
}

bool has_same_shape(const GpuSequence &one, const GpuSequence &other) {
  return std::equal(one.launches.begin(), one.launches.end(), other.launches.begin(), other.launches.end(),
                    [](const GpuLaunch &a, const GpuLaunch &b) { return has_same_shape(a, b); });
}

bool has_same_parameters(const GpuSequence &one, const GpuSequence &other, size_t index) {
  const GpuLaunch &launch = one.launches[index];
  return !memcmp(parameters_of(one, launch), parameters_of(other, other.launches[index]), launch.parameter_bytes);
}

size_t differences(const GpuSequence &one, const GpuSequence &other) {
  size_t count = 0;
  for (size_t i = 0; i < one.launches.size(); i++) count += !has_same_parameters(one, other, i);
  return count;
}

uint64_t shape_hash(const GpuSequence &sequence) {
  Hash hash;
  for (const GpuLaunch &launch : sequence.launches) {
    hash.add(uintptr_t(launch.function));
    hash.add(launch.threadgroup_bytes);
    hash.add(launch.staged);
    for (int axis = 0; axis < 3; axis++) hash.add(uint64_t(launch.groups[axis]) << 32 | launch.threads[axis]);
  }
  return hash.value();
}

uint64_t parameter_hash(const GpuSequence &sequence) {
  Hash hash;
  for (size_t at = 0; at < sequence.parameters.size(); at += sizeof(uint64_t)) {
    uint64_t word;
    memcpy(&word, sequence.parameters.data() + at, sizeof word);
    hash.add(word);
  }
  return hash.value();
}

cuda::KernelNode node_of(const GpuLaunch &launch, PlacedParameters &parameters) {
  const auto &[x, y, z] = launch.groups;
  const auto &[width, height, depth] = launch.threads;
  return {launch.function,   x,       y,       z,      width, height, depth, launch.threadgroup_bytes,
          parameters.list(), nullptr, nullptr, nullptr};
}

} // namespace

// Memory that a launched graph may still use is kept for another graph of the stream, which runs later.
void GpuGraphs::drop(Graph &graph) {
  const cuda::Functions &call = driver().call;
  if (graph.executable) call.graph_executable_destroy(graph.executable); // lets a launched graph finish
  if (graph.graph) call.graph_destroy(graph.graph);
  if (graph.bytes) spare_[graph.room].push_back(graph.bytes);
}

void GpuGraphs::drop_all() {
  for (auto &[hash, family] : families_)
    for (const auto &graph : family.graphs) drop(*graph);
  families_.clear();
}

void GpuGraphs::end() {
  drop_all();
  for (const auto &[room, list] : spare_)
    for (cuda::Address bytes : list) driver().call.memory_free(bytes);
  spare_.clear();
}

bool GpuGraphs::run(cuda::Stream stream, const GpuSequence &sequence, const uint8_t *bytes, size_t count) {
  if (is_refused_ || !setting_flag(Setting::gpu_graphs) || sequence.launches.size() < fewest_launches) return false;
  Graph *graph = graph_for(sequence, count);
  if (!graph) return false;
  // A driver that refuses a part of this is not asked again: it launches kernels one by one, and reports their errors.
  is_refused_ = !update(*graph, sequence) || !launch(*graph, stream, bytes, count);
  return !is_refused_;
}

// Returns the graph that needs the fewest new parameters, or makes one; null if the sequence must first repeat.
GpuGraphs::Graph *GpuGraphs::graph_for(const GpuSequence &sequence, size_t byte_count) {
  if (families_.size() > most_families) drop_all();
  Family &family = families_[shape_hash(sequence)];
  Graph *nearest = nullptr;
  size_t fewest = sequence.launches.size() / 4 + 1;
  for (const auto &graph : family.graphs) {
    if (graph->content.size() != byte_count || !has_same_shape(graph->sequence, sequence)) continue;
    if (const size_t count = differences(graph->sequence, sequence); count < fewest)
      fewest = count, nearest = graph.get();
  }
  if (nearest) return nearest;
  const uint64_t hash = parameter_hash(sequence);
  if (std::find(family.seen.begin(), family.seen.end(), hash) == family.seen.end()) {
    family.seen[family.next++ % family.seen.size()] = hash;
    return nullptr;
  }
  if (family.graphs.size() == most_graphs) {
    const auto oldest = std::min_element(family.graphs.begin(), family.graphs.end(),
                                         [](const auto &a, const auto &b) { return a->used < b->used; });
    drop(**oldest);
    family.graphs.erase(oldest);
  }
  Graph &made = *family.graphs.emplace_back(std::make_unique<Graph>());
  is_refused_ = !make(made, sequence, byte_count);
  return is_refused_ ? nullptr : &made;
}

// The kernels of a stream run in order, so each node depends on the previous one.
bool GpuGraphs::make(Graph &made, const GpuSequence &sequence, size_t byte_count) {
  const cuda::Functions &call = driver().call;
  made.sequence = sequence;
  made.content.resize(byte_count);
  if (byte_count && !take_bytes(made)) return false;
  if (call.graph_create(&made.graph, 0) != cuda::success) return false;
  for (const GpuLaunch &launch : sequence.launches) {
    PlacedParameters parameters(sequence, launch, made.bytes);
    const cuda::KernelNode node = node_of(launch, parameters);
    cuda::GraphNode added = nullptr;
    const cuda::GraphNode *previous = made.nodes.empty() ? nullptr : &made.nodes.back();
    if (call.graph_add_kernel(&added, made.graph, previous, previous ? 1 : 0, &node) != cuda::success) return false;
    made.nodes.push_back(added);
  }
  return call.graph_instantiate(&made.executable, made.graph, 0) == cuda::success;
}

bool GpuGraphs::take_bytes(Graph &graph) {
  graph.room = least_room;
  while (graph.room < graph.content.size()) graph.room *= 2;
  std::vector<cuda::Address> &spare = spare_[graph.room];
  if (spare.empty()) return driver().call.memory_allocate(&graph.bytes, graph.room) == cuda::success;
  graph.bytes = spare.back();
  spare.pop_back();
  return true;
}

// Gives the sequence's parameters to the nodes whose parameters differ. Launches before this keep theirs.
bool GpuGraphs::update(Graph &graph, const GpuSequence &sequence) {
  for (size_t i = 0; i < sequence.launches.size(); i++) {
    if (has_same_parameters(graph.sequence, sequence, i)) continue;
    const GpuLaunch &launch = sequence.launches[i];
    PlacedParameters parameters(sequence, launch, graph.bytes);
    const cuda::KernelNode node = node_of(launch, parameters);
    if (driver().call.graph_set_kernel(graph.executable, graph.nodes[i], &node) != cuda::success) return false;
    memcpy(graph.sequence.parameters.data() + graph.sequence.launches[i].parameters, parameters_of(sequence, launch),
           launch.parameter_bytes);
  }
  return true;
}

bool GpuGraphs::launch(Graph &graph, cuda::Stream stream, const uint8_t *bytes, size_t count) {
  const cuda::Functions &call = driver().call;
  const bool is_new = graph.used == 0;
  graph.used = ++time_;
  if (count && (is_new || memcmp(graph.content.data(), bytes, count))) {
    memcpy(graph.content.data(), bytes, count);
    if (call.copy_from_host(graph.bytes, bytes, count, stream) != cuda::success) return false;
  }
  return call.graph_launch(graph.executable, stream) == cuda::success;
}

} // namespace mrt
