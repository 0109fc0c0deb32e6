// The blocks of the functions "unary", "binary" and "ternary".
#pragma once

#include "loop.h"

namespace orchard {

// Enumerations of the operations: the value of an operation is its index in the table.
enum class Unary : int;
enum class Binary : int;
enum class Ternary : int;

// The blocks of the three functions.
template <class Operation, int operands> struct ElementwiseBlock {
  Name<Operation> operation;
  DTypeField dtype;
  LoopBlock<operands> loop;
};
using UnaryBlock = ElementwiseBlock<Unary, 2>;
using BinaryBlock = ElementwiseBlock<Binary, 3>;
using TernaryBlock = ElementwiseBlock<Ternary, 4>;

} // namespace orchard
