// The elementwise calls of a chain, prepared once to run on many pieces.
//
// Successive cheap operations on float32 become one segment, whose intermediate values stay in registers
// (tiles.h). Other elementwise operations call their row functions. Both give the bits of a plain call.
#pragma once

#include "calls.h"
#include "chain.h"
#include "tiles.h"

namespace orchard {

struct SegmentOperand {
  // An element for each element of the units; a row that all units share; an element for each unit; a single element.
  enum class Layout { dense, row, column, constant } layout;
  char *first;   // in memory: the element of unit 0
  int64_t local; // the number of a local buffer; -1 for memory
  int64_t size;  // of an element in bytes
  int64_t fill;  // of a row function: the number of the buffer that repeats its element; -1 if it is read in place

  bool is_value() const { return layout == Layout::column || layout == Layout::constant; }
};

struct SegmentStep {
  enum class Access { none, value, read, write } access;
  TileStep step;
  SegmentOperand operand;
};

// One or more calls of a chain.
struct Segment {
  enum class Kind { tiles, row, other } kind;
  int64_t call;                         // the first one
  bool is_by_units;                     // whether an operand has the layout `row` or `column`
  std::vector<SegmentStep> steps;       // of tiles
  bool is_repeatable;                   // of tiles: whether an element may be computed twice
  ElementwiseRow row;                   // of a row function
  std::vector<SegmentOperand> operands; // of a row function: its inputs and its result
};

class Segments {
public:
  // Elements of memory that segments access are checked against the sizes in the calls' blocks.
  Segments(const Chain &chain, void *const *addresses);

  const std::vector<Segment> &all() const { return segments_; }
  // The bytes of memory for `locals`.
  int64_t local_bytes() const { return (chain_.locals + fills_) * chain_.local_bytes(); }
  // Writes the elements that row functions need repeatedly.
  void fill(char *locals) const;
  // Computes a piece of a segment that is not of kind `other`.
  void run(const Segment &segment, const Piece &piece, char *locals) const;
  // Orders the results before later stores of this thread.
  void finish() const;

private:
  struct Found;
  struct Range;
  bool find(const FusedCall &call, void *const *addresses, Found &found) const;
  bool find_operand(const FusedCall &call, int at, void *const *addresses, Found &found) const;
  bool is_by_tiles(const Found &found) const;
  bool replaces_values(const std::vector<Found> &found, size_t begin, size_t end) const;
  bool is_read(const std::vector<Found> &found, const FusedOperand &result, size_t first) const;
  void add_tiles(const std::vector<Found> &found, size_t begin, size_t end);
  void add_operation(const Found &found, const SegmentOperand *accumulated, Segment &segment);
  void add_store(const std::vector<Found> &found, size_t call, size_t reader, Segment &segment);
  void add_row(const Found &found, size_t call);
  char *address(const SegmentOperand &operand, const Range &range, char *locals) const;
  void run_tiles(const Segment &segment, const Range &range, char *locals) const;
  void run_rest(const Segment &segment, TileStep *steps, int64_t rest) const;
  void run_row(const Segment &segment, const Range &range, char *locals) const;

  const Chain &chain_;
  std::vector<Segment> segments_;
  int64_t fills_ = 0;
  bool is_streamed_ = false;
};

} // namespace orchard
