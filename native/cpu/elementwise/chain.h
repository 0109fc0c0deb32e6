// Chains: calls of a program that pass through pieces of their units together.
#pragma once

#include "../functions.h"

#include <cstdint>
#include <vector>

namespace orchard {

constexpr int64_t most_fused_operands = 4;
// The largest element has 8 bytes.
constexpr int64_t largest_element = 8;

enum class OperandKind : int32_t { memory = 0, local = 1 };

struct FusedOperand {
  OperandKind kind;
  int64_t place;  // a slot or a local buffer; -1 if the operand is omitted
  int64_t offset; // the index of its offset in the block
  int64_t step;   // the elements from one unit to the next

  bool is_at(const FusedOperand &other) const { return kind == other.kind && place == other.place; }
};

// A call in a fused instruction, whose block each thread copies.
struct FusedCall {
  const ExportedFunction *function;
  const double *block;
  int64_t doubles, operands, count; // `count`: the index of the number of units in the block
  FusedOperand operand[most_fused_operands];
};

struct Chain {
  std::vector<FusedCall> calls;
  int64_t units, piece, width, locals;

  // The bytes of a local buffer.
  int64_t local_bytes() const { return piece * width * largest_element; }
};

// Units, and elements of each of them.
struct Piece {
  int64_t start, count, column, columns;
};

} // namespace orchard
