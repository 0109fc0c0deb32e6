// Sequences of launches that repeat, as CUDA graphs: the driver then issues all launches in one call.
//
// A sequence is compared with the earlier ones that launch the same kernels with the same grids. If an earlier one is
// equal except for a few parameters, its graph gets the new ones and runs. A sequence that is seen for the second time
// becomes a graph. All others are launched one by one.
#pragma once

#include "gpu/sequence.h"

#include <array>
#include <map>
#include <memory>
#include <unordered_map>

namespace mrt {

class GpuGraphs {
public:
  // Runs the sequence as a graph on the stream. `bytes` are its staged bytes, which stay unchanged until the work has
  // ended. Returns false, having launched nothing, if the sequence has no graph.
  bool run(cuda::Stream stream, const GpuSequence &sequence, const uint8_t *bytes, size_t count);
  // Frees everything, after the stream was destroyed.
  void end();

private:
  struct Graph {
    cuda::Graph graph = nullptr;
    cuda::GraphExecutable executable = nullptr;
    std::vector<cuda::GraphNode> nodes;
    GpuSequence sequence;
    cuda::Address bytes = 0;      // the GPU's copy of the staged bytes
    size_t room = 0;              // allocated for them
    std::vector<uint8_t> content; // its content after the last launch
    uint64_t used = 0;            // the time of the last launch
  };
  // The sequences that launch the same kernels with the same grids.
  struct Family {
    std::vector<std::unique_ptr<Graph>> graphs;
    std::array<uint64_t, 8> seen = {}; // hashes of sequences without a graph
    size_t next = 0;
  };

  Graph *graph_for(const GpuSequence &sequence, size_t byte_count);
  bool make(Graph &made, const GpuSequence &sequence, size_t byte_count);
  bool take_bytes(Graph &graph);
  bool update(Graph &graph, const GpuSequence &sequence);
  bool launch(Graph &graph, cuda::Stream stream, const uint8_t *bytes, size_t count);

  void drop(Graph &graph);
  void drop_all();

  bool is_refused_ = false;                            // by the driver
  uint64_t time_ = 0;                                  // counts launches of graphs
  std::unordered_map<uint64_t, Family> families_;      // by the hash of kernels and grids
  std::map<size_t, std::vector<cuda::Address>> spare_; // by size
};

} // namespace mrt
