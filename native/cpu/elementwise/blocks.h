// The blocks of the elementwise functions.
#pragma once

#include "loop.h"

namespace orchard {

// The tables of operations, as lists of names: an operation's ordinal is its index in its table.
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
