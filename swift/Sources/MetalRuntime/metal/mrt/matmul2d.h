// Matrix products of Metal Performance Primitives: mpp::tensor_ops::matmul2d.
//
// Products are summed in float32, those of 8-bit integers in int32, in the order of k, and rounded once at the end of
// run(). Each SIMD-group computes its fragments of the destination (cooperative_tensor.h) and reads each element that
// they need once.
#ifndef MRT_MATMUL2D_H
#define MRT_MATMUL2D_H

#include "cooperative_tensor.h"

#if __METAL_VERSION__ >= 400

namespace mrt {

// A descriptor encoded as an integer, since C++17 has no template arguments of class type.
enum class ProductCode : ulong {};
// Two values stand for a dynamic size: -1 (metal::dynamic_extent as an int), and dynamic_length_v.
constexpr MRT_CONSTANT int dynamic_depth = -1, dynamic_length = 0x7fffffff;

template <ProductCode code> struct ProductShape {
  static constexpr MRT_CONSTANT int m = int(ulong(code) & 0xfff), n = int(ulong(code) >> 12 & 0xfff);
  static constexpr MRT_CONSTANT int k = int(uint(ulong(code) >> 24));
  static constexpr MRT_CONSTANT bool has_depth = k != dynamic_depth && k != dynamic_length;
  static constexpr MRT_CONSTANT bool left_transposed = ulong(code) >> 56 & 1, right_transposed = ulong(code) >> 57 & 1;
  static constexpr MRT_CONSTANT bool accumulates = ulong(code) >> 59 & 1;

  static_assert(m > 0 && n > 0 && (m % 16 == 0 || n % 16 == 0), "At least one of M or N must be a multiple of 16");
  static_assert(n % 8 == 0, "N must be a multiple of 8");
  static_assert(!has_depth || (k >= 0 && k % 16 == 0), "K must be dynamic or a multiple of 16");
};

template <typename> struct OperandKind { // no operand
  static constexpr MRT_CONSTANT bool is_tensor = false, is_cooperative = false;
};
template <typename T, typename E, typename D, typename... Tags> struct OperandKind<tensors::tensor<T, E, D, Tags...>> {
  static constexpr MRT_CONSTANT bool is_tensor = true, is_cooperative = false;
  typedef T element;
};
template <typename T, typename E, typename L> struct OperandKind<tensors::cooperative_tensor<T, E, L>> {
  static constexpr MRT_CONSTANT bool is_tensor = false, is_cooperative = true;
  typedef T element;
  typedef L layout;
};
template <typename T> using operand_kind = OperandKind<metal::remove_cv_t<metal::remove_addrspace_t<T>>>;
// Keeps `const`, so that const elements are rejected, as by Apple's compiler.
template <typename T> using operand_element = metal::remove_addrspace_t<typename operand_kind<T>::element>;

// The types of matmul2d's table (MPPTensorOpsMatMul2d.h): 1 an 8-bit integer, 2 half or bfloat, 3 float, 0 none.
template <typename T>
constexpr MRT_CONSTANT int factor_kind = __is_same(T, int8_t) || __is_same(T, uint8_t) ? 1
                                         : __is_same(T, half) || __is_same(T, bfloat)  ? 2
                                         : __is_same(T, float)                         ? 3
                                                                                       : 0;
template <typename L, typename R, typename D>
constexpr MRT_CONSTANT bool is_product_type =
    factor_kind<L> != 0 && factor_kind<R> != 0 &&
    (__is_same(D, float) ||
     (factor_kind<L> == 1 && factor_kind<R> == 1
          ? __is_same(D, int) || __is_same(D, half)
          : factor_kind<L> != 3 && factor_kind<R> != 3 && factor_kind<D> == 2 && (__is_same(D, L) || __is_same(D, R))));

template <typename L, typename R, typename D> struct ProductTypes {
  static_assert(factor_kind<L> != 0, "matmul2d: the left operand's elements must be uint8_t, int8_t, half, bfloat or "
                                     "float, and not const");
  static_assert(factor_kind<R> != 0, "matmul2d: the right operand's elements must be uint8_t, int8_t, half, bfloat or "
                                     "float, and not const");
  static_assert(factor_kind<L> == 0 || factor_kind<R> == 0 || is_product_type<L, R, D>,
                "matmul2d: the destination's type is none that these operands can have");
  typedef D destination;
};

// A matrix of memory with these sizes: m x k, or k x m if it is transposed.
template <typename Shape, Role role, int Groups, typename L, typename R> struct LayoutOf;
template <typename Shape, int Groups, typename L, typename R> struct LayoutOf<Shape, Role::destination, Groups, L, R> {
  typedef Fragments<Role::destination, Shape::m, Shape::n, true, Groups, L, R> type;
};
template <typename Shape, int Groups, typename L, typename R> struct LayoutOf<Shape, Role::left, Groups, L, R> {
  static_assert(Shape::has_depth && Groups == 1,
                "matmul2d: cooperative inputs require a descriptor with a K, and execution_simdgroup");
  typedef Fragments<Role::left, Shape::left_transposed ? Shape::k : Shape::m,
                    Shape::left_transposed ? Shape::m : Shape::k, !Shape::left_transposed, Groups, L, R>
      type;
};
template <typename Shape, int Groups, typename L, typename R> struct LayoutOf<Shape, Role::right, Groups, L, R> {
  static_assert(Shape::has_depth && Groups == 1,
                "matmul2d: cooperative inputs require a descriptor with a K, and execution_simdgroup");
  typedef Fragments<Role::right, Shape::right_transposed ? Shape::n : Shape::k,
                    Shape::right_transposed ? Shape::k : Shape::n, Shape::right_transposed, Groups, L, R>
      type;
};
template <typename T, typename Coordinate, typename Layout>
using Cooperative =
    tensors::cooperative_tensor<T, tensors::extents<Coordinate, size_t(Layout::columns), size_t(Layout::rows)>, Layout>;

template <typename Scope> struct GroupsOf {
  static_assert(sizeof(Scope) == 0, "matmul2d: the scope must be execution_simdgroup or execution_simdgroups<N>");
};
template <size_t Count> struct GroupsOf<tensors::execution_simdgroups<Count>> {
  static constexpr MRT_CONSTANT int count = int(Count);
};

// Whether a cooperative operand has this role in a product of this shape; other operands are tensors.
template <Role role, typename Shape, int Groups, typename Operand, bool = operand_kind<Operand>::is_cooperative>
struct Fits {
  static constexpr MRT_CONSTANT bool value = operand_kind<Operand>::is_tensor;
};
template <Role role, typename Shape, int Groups, typename Operand> struct Fits<role, Shape, Groups, Operand, true> {
  typedef typename operand_kind<Operand>::layout Layout;
  typedef typename LayoutOf<Shape, role, Groups, typename Layout::left, typename Layout::right>::type Wanted;
  static constexpr MRT_CONSTANT bool value = __is_same(Layout, Wanted);
};
template <typename L, typename R, typename Operand, bool = operand_kind<Operand>::is_cooperative> struct FitsTypes {
  static constexpr MRT_CONSTANT bool value = true;
};
template <typename L, typename R, typename Operand> struct FitsTypes<L, R, Operand, true> {
  typedef typename operand_kind<Operand>::layout Layout;
  static constexpr MRT_CONSTANT bool value =
      __is_same(typename Layout::left, L) && __is_same(typename Layout::right, R);
};

template <typename Shape, int Groups, typename Left, typename Right, typename Destination> struct CheckedRun {
  typedef operand_element<Left> L;
  typedef operand_element<Right> R;
  typedef typename ProductTypes<L, R, operand_element<Destination>>::destination D;
  static_assert(Fits<Role::left, Shape, Groups, Left>::value,
                "matmul2d::run: the left operand must be a tensor, or get_left_input_cooperative_tensor's result");
  static_assert(Fits<Role::right, Shape, Groups, Right>::value,
                "matmul2d::run: the right operand must be a tensor, or get_right_input_cooperative_tensor's result");
  static_assert(Fits<Role::destination, Shape, Groups, Destination>::value,
                "matmul2d::run: the destination must be a tensor, or get_destination_cooperative_tensor's result for "
                "a product of this size and scope");
  static_assert(FitsTypes<L, R, Left>::value && FitsTypes<L, R, Right>::value && FitsTypes<L, R, Destination>::value,
                "Input types must match cooperative tensor types");
  typedef void type;
};

#ifndef MRT_STRICT

// The number of values of k that are staged at a time.
constexpr int staged_depth = 16;

template <typename Sum, typename Left, typename Right> struct ProductLane {
  const Sum *left, *right; // this lane's share of the staged elements: element e is in lane e % 32
  const Left *left_operand;
  const Right *right_operand;
  Sum *sums;  // by slot of the destination's layout
  long first; // k
  int group;
};

template <typename Sum> MRT_FUNC Sum missing() {
  if constexpr (metal::is_integral_v<Sum>) return Sum(0x55555555);
  else return Sum(__builtin_nanf(""));
}

// Gathers staged[k][i], for k from `first` on, from a lane's share or from a cooperative tensor's elements. `i` counts
// m or n; with `along_rows`, it counts the rows of memory.
template <typename Operand, bool along_rows, int count, typename Sum>
MRT_UNINSTRUMENTED void gather(Sum (*staged)[count], const Sum *share, const Operand *operand, int lane, long first) {
  if constexpr (operand_kind<Operand>::is_cooperative) {
    typedef typename operand_kind<Operand>::layout Layout;
    for (int slot = 0; slot < Layout::capacity; slot++) {
      const TensorPlace place = Layout::place(slot, lane, 0);
      const long k = (along_rows ? place.column : place.row) - first;
      if (place.exists && k >= 0 && k < staged_depth)
        staged[k][along_rows ? place.row : place.column] = Sum(operand->elements[slot]);
    }
  } else {
    for (int e = lane; e < count * staged_depth; e += 32) staged[e % staged_depth][e / staged_depth] = share[e / 32];
  }
}

// Adds the products of the staged elements to the sums of all lanes.
template <typename Shape, typename Layout, typename Sum, typename Left, typename Right>
MRT_UNINSTRUMENTED void resolve_stage(MrtExchange *exchange) {
  typedef ProductLane<Sum, Left, Right> Lane;
  Sum left[staged_depth][Shape::m], right[staged_depth][Shape::n];
  for (Sum(&row)[Shape::m] : left)
    for (Sum &each : row) each = missing<Sum>();
  for (Sum(&row)[Shape::n] : right)
    for (Sum &each : row) each = missing<Sum>();
  for (int lane = 0; lane < 32; lane++) {
    if (!(exchange->active >> lane & 1)) continue;
    const Lane &part = *static_cast<Lane *>(exchange->input[lane]);
    gather<Left, !Shape::left_transposed, Shape::m>(left, part.left, part.left_operand, lane, part.first);
    gather<Right, Shape::right_transposed, Shape::n>(right, part.right, part.right_operand, lane, part.first);
  }
  for (int lane = 0; lane < 32; lane++) {
    if (!(exchange->active >> lane & 1)) continue;
    const Lane &part = *static_cast<Lane *>(exchange->input[lane]);
    for (int slot = 0; slot < Layout::capacity; slot++) {
      const TensorPlace place = Layout::place(slot, lane, part.group);
      if (!place.exists) continue;
      Sum sum = part.sums[slot];
      for (int k = 0; k < staged_depth; k++) sum += left[k][place.row] * right[k][place.column];
      part.sums[slot] = sum;
    }
  }
  runtime->count_matrix(mrt_u32(Layout::own * 16 * 16 * staged_depth));
}

// The rows and columns of the destination that a SIMD-group's fragments contain.
struct ProductPart {
  int first_row, last_row, first_column, last_column;
};
template <typename Layout> MRT_FUNC ProductPart part_of(int group) {
  const int first = group * Layout::own, last = first + Layout::own - 1;
  const int row = first / Layout::fragment_columns, last_row = last / Layout::fragment_columns;
  const bool one_row = row == last_row;
  return {row * 16, last_row * 16 + 15, one_row ? first % Layout::fragment_columns * 16 : 0,
          one_row ? last % Layout::fragment_columns * 16 + 15 : Layout::columns - 1};
}

// Reads this lane's share of a tensor's elements for k from `first` to `end`. Elements outside the tensor are zero
// along m and n. Along k they are `missing`, since the program promises that all k of the descriptor exist.
template <bool along_rows, typename Sum, typename T, typename E, typename D, typename... Tags>
MRT_FUNC void read_share(Sum *share, const tensors::tensor<T, E, D, Tags...> &source, int count, int begin, int last,
                         long first, long end) {
  const long depth = source.shape.values[along_rows ? 0 : 1];
  for (int e = int(lane_index()); e < count * staged_depth; e += 32) {
    const long i = e / staged_depth, k = first + e % staged_depth;
    const long x = along_rows ? k : i, y = along_rows ? i : k;
    Sum value = Sum(0);
    if (i >= begin && i <= last && k < end) {
      if (source.contains(x, y)) value = Sum(source.at(x, y));
      else if (k >= depth) value = missing<Sum>();
    }
    share[e / 32] = value;
  }
}
template <bool, typename Sum, typename T, typename E, typename L>
MRT_FUNC void read_share(Sum *, const tensors::cooperative_tensor<T, E, L> &, int, int, int, long, long) {}

// Returns the length of an operand along k: the extent of memory, or the size of the cooperative tensor.
template <bool along_rows, typename Operand> MRT_FUNC long depth_of(const Operand &operand) {
  if constexpr (operand_kind<Operand>::is_cooperative)
    return along_rows ? operand_kind<Operand>::layout::columns : operand_kind<Operand>::layout::rows;
  else return long(operand.shape.values[along_rows ? 0 : 1]);
}

#ifdef MRT_CHECKED
// An extent that is static is not compared with the tile when the kernel runs.
template <int count, int dimension, typename Operand> MRT_FUNC void check_width(const Operand &, Site site) {
  if constexpr (operand_kind<Operand>::is_tensor) {
    constexpr long width = long(Operand::extents_type::static_extent(dimension));
    MRT_CHECK_TENSOR(width < 0 || width >= count, shape_differs, count, width)
  }
}
template <typename Operand>
MRT_FUNC void check_written(const Operand &operand, [[maybe_unused]] TensorProblem problem,
                            [[maybe_unused]] Site site) {
  if constexpr (operand_kind<Operand>::is_cooperative) {
    typedef typename operand_kind<Operand>::layout Layout;
    for (int slot = 0; slot < Layout::capacity; slot++)
      if (!operand.written[slot] && Layout::place(slot).exists)
        return report_tensor(problem, slot, Layout::capacity, site);
  }
}
template <typename Shape, int Groups, typename Left, typename Right, typename Destination>
MRT_FUNC void check_run(const Left &left, const Right &right, const Destination &destination, Site site) {
  const mrt_u32 groups = simdgroup_count();
  MRT_CHECK_TENSOR(Groups == 1 || groups == mrt_u32(Groups), wrong_scope, Groups, groups)
  const long depth = depth_of<!Shape::left_transposed>(left), other = depth_of<Shape::right_transposed>(right);
  if constexpr (Shape::has_depth) {
    MRT_CHECK_TENSOR(depth >= Shape::k, shape_differs, Shape::k, depth)
    MRT_CHECK_TENSOR(other >= Shape::k, shape_differs, Shape::k, other)
  } else MRT_CHECK_TENSOR(depth == other, shape_differs, depth, other)
  check_width<Shape::m, Shape::left_transposed ? 0 : 1>(left, site);
  check_width<Shape::n, Shape::right_transposed ? 1 : 0>(right, site);
  check_width<Shape::n, 0>(destination, site);
  check_width<Shape::m, 1>(destination, site);
  check_written(left, operand_not_written, site);
  check_written(right, operand_not_written, site);
  if constexpr (Shape::accumulates) check_written(destination, sum_not_written, site);
}
#define MRT_CHECK_RUN(...) mrt::check_run<__VA_ARGS__>(left, right, destination, site);
#else
#define MRT_CHECK_RUN(...)
#endif

// Reads or writes the destination's element for a slot.
template <typename Layout, typename Sum, typename T, typename E, typename D, typename... Tags>
MRT_FUNC Sum old_sum(const tensors::tensor<T, E, D, Tags...> &destination, int slot) {
  const TensorPlace place = Layout::place(slot);
  return place.exists && destination.contains(place.column, place.row) ? Sum(destination.at(place.column, place.row))
                                                                       : Sum(0);
}
template <typename Layout, typename Sum, typename T, typename E, typename L>
MRT_FUNC Sum old_sum(const tensors::cooperative_tensor<T, E, L> &destination, int slot) {
  return Sum(destination.elements[slot]);
}
template <typename Layout, typename Sum, typename T, typename E, typename D, typename... Tags>
MRT_FUNC void put_sum(const tensors::tensor<T, E, D, Tags...> &destination, int slot, Sum sum) {
  const TensorPlace place = Layout::place(slot);
  if (place.exists && destination.contains(place.column, place.row))
    destination.at(place.column, place.row) = metal::remove_cv_t<metal::remove_addrspace_t<T>>(sum);
}
template <typename Layout, typename Sum, typename T, typename E, typename L>
MRT_FUNC void put_sum(tensors::cooperative_tensor<T, E, L> &destination, int slot, Sum sum) {
  destination.note_written(slot);
  destination.elements[slot] = T(sum);
}

// Operands are cooperative tensors, or tensors with sizes and strides (not handles).
template <typename Shape, int Groups, typename Left, typename Right, typename Destination>
MRT_COOPERATIVE void run_product(const Left &left, const Right &right, Destination &destination, Site site) {
  typedef operand_element<Left> L;
  typedef operand_element<Right> R;
  typedef metal::conditional_t<factor_kind<L> == 1 && factor_kind<R> == 1, int, float> Sum;
  typedef typename LayoutOf<Shape, Role::destination, Groups, L, R>::type Layout;
  MRT_CHECK_RUN(Shape, Groups, Left, Right, Destination)
  const int group = Groups == 1 ? 0 : int(simdgroup_index());
  const ProductPart part = part_of<Layout>(group);
  Sum sums[Layout::capacity];
  for (int slot = 0; slot < Layout::capacity; slot++)
    sums[slot] = Shape::accumulates ? old_sum<Layout, Sum>(destination, slot) : Sum(0);
  const long end = Shape::has_depth ? Shape::k : depth_of<!Shape::left_transposed>(left);
  Sum left_share[(Shape::m * staged_depth + 31) / 32], right_share[(Shape::n * staged_depth + 31) / 32];
  for (long first = 0; first < end || first == 0; first += staged_depth) {
    read_share<!Shape::left_transposed>(left_share, left, Shape::m, part.first_row, part.last_row, first, end);
    read_share<Shape::right_transposed>(right_share, right, Shape::n, part.first_column, part.last_column, first, end);
    ProductLane<Sum, Left, Right> lane = {left_share, right_share, &left, &right, sums, first, group};
    meet({MRT_COLLECTIVE_MATRIX, "matmul2d::run", site}, resolve_stage<Shape, Layout, Sum, Left, Right>, &lane, nullptr,
         0);
  }
  for (int slot = 0; slot < Layout::capacity; slot++) put_sum<Layout>(destination, slot, sums[slot]);
}

#endif
} // namespace mrt

namespace mpp {
namespace tensor_ops {

template <typename T> constexpr MRT_CONSTANT T dynamic_length_v = T(~0ul >> (65 - 8 * sizeof(T)));

// The tile of one product: m x n, summed over k elements at a time. If k is dynamic, over all k of the operands.
struct matmul2d_descriptor {
  enum class mode { multiply, multiply_accumulate };

  constexpr MRT_METHOD matmul2d_descriptor(int tile_m, int tile_n, int tile_k = mrt::dynamic_depth, bool left = false,
                                           bool right = false, bool relaxed = false, mode what = mode::multiply)
      : m(tile_m), n(tile_n), k(tile_k), transpose_left(left), transpose_right(right), relaxed_precision(relaxed),
        matmul_mode(what) {}

#define MRT_PRODUCT_CODE(...)                                                                                          \
  constexpr MRT_METHOD operator mrt::ProductCode() const __VA_ARGS__ {                                                 \
    return mrt::ProductCode(ulong(m & 0xfff) | ulong(n & 0xfff) << 12 | ulong(uint(k)) << 24 |                         \
                            ulong(transpose_left) << 56 | ulong(transpose_right) << 57 |                               \
                            ulong(relaxed_precision) << 58 | ulong(matmul_mode == mode::multiply_accumulate) << 59);   \
  }
  MRT_IN_EACH_SPACE(MRT_PRODUCT_CODE)
#undef MRT_PRODUCT_CODE

  int m, n, k;
  bool transpose_left, transpose_right, relaxed_precision;
  mode matmul_mode;
};

template <mrt::ProductCode code, typename Scope> struct matmul2d {
  typedef mrt::ProductShape<code> Shape;
  typedef Scope scope;
  static constexpr MRT_CONSTANT int groups = mrt::GroupsOf<Scope>::count;

  template <typename L, typename R, typename D, typename Coordinate = int>
  using cooperative_tensor_left_input_t =
      mrt::Cooperative<L, Coordinate, typename mrt::LayoutOf<Shape, mrt::Role::left, groups, L, R>::type>;
  template <typename L, typename R, typename D, typename Coordinate = int>
  using cooperative_tensor_right_input_t =
      mrt::Cooperative<R, Coordinate, typename mrt::LayoutOf<Shape, mrt::Role::right, groups, L, R>::type>;
  // Takes the types of the operands instead of their elements' types.
  template <typename Left, typename Right, typename D, typename Coordinate = int>
  using cooperative_tensor_destination_t = mrt::Cooperative<
      typename mrt::ProductTypes<mrt::operand_element<Left>, mrt::operand_element<Right>, D>::destination, Coordinate,
      typename mrt::LayoutOf<Shape, mrt::Role::destination, groups, mrt::operand_element<Left>,
                             mrt::operand_element<Right>>::type>;

  template <typename L, typename R, typename D, typename Coordinate = int>
  MRT_CALL cooperative_tensor_left_input_t<L, R, D, Coordinate> get_left_input_cooperative_tensor() const
      MRT_BODY(return {};) template <typename L, typename R, typename D, typename Coordinate = int>
      MRT_CALL cooperative_tensor_right_input_t<L, R, D, Coordinate> get_right_input_cooperative_tensor() const
      MRT_BODY(return {};) template <typename Left, typename Right, typename D, typename Coordinate = int>
      MRT_CALL cooperative_tensor_destination_t<Left, Right, D, Coordinate> get_destination_cooperative_tensor() const
      MRT_BODY(return {};)

      // destination = left right, or destination += left right.
      template <typename Left, typename Right, typename Destination>
      MRT_COOPERATIVE typename mrt::CheckedRun<Shape, groups, Left, Right, Destination>::type
      run(MRT_THREAD Left &left, MRT_THREAD Right &right, MRT_THREAD Destination &destination MRT_SITE) const
      MRT_BODY(auto &&result = mrt::view_of(destination);
               mrt::run_product<Shape, groups>(mrt::view_of(left), mrt::view_of(right), result, site);)
};

} // namespace tensor_ops
} // namespace mpp

#endif
#endif
