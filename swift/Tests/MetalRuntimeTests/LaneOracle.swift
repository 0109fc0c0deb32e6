/// The results of SIMD-group and quad-group functions, implemented independently from the language specification (MSL
/// 6.9.2 and 6.9.3) in plain Swift. The tests compare every function on every set of active lanes with this table.

/// One group of lanes: the operands of the active lanes, by position in the group.
struct LaneGroup {
    let width: Int
    let operands: [Int: Int]

    var positions: [Int] { operands.keys.sorted() }
    func fold(_ combine: (Int, Int) -> Int) -> Int { positions.map { operands[$0]! }.reduce { combine($0, $1) } }
    func below(_ position: Int, orAt: Bool) -> [Int] {
        positions.filter { $0 < position || (orAt && $0 == position) }.map { operands[$0]! }
    }
    /// Returns the operand of another position; nil if that lane is not active, which is undefined in MSL.
    func read(_ position: Int) -> Int? { operands[position] }
    func mask(_ vote: (Int) -> Bool) -> Int { positions.filter { vote(operands[$0]!) }.reduce(0) { $0 | 1 << $1 } }
}

struct LaneCase {
    let expression: String
    /// The result for a position; nil if undefined.
    let expected: (LaneGroup, Int) -> Int?
}

extension LaneCase {
    private var name: Substring {
        expression.dropFirst("int(".count).drop { $0 != "_" }.dropFirst().prefix { $0 != "(" }
    }

    /// Votes take a bool, and the operand of the products is a condition of `?:`, which must be a scalar.
    var takesVectors: Bool {
        name != "all" && name != "any" && expression.contains("(x") && !expression.contains("?")
            && !expression.contains("vote")
    }
    /// Whether the function accepts only integers.
    var isOfBits: Bool { ["and", "or", "xor"].contains(name) }
    /// The expression with vectors of a type instead of `int`.
    func vectorExpression(of type: String) -> String { type + expression.dropFirst("int".count) }
}

private extension Array where Element == Int {
    func reduce(_ combine: (Int, Int) -> Int) -> Int { dropFirst().reduce(first!, combine) }
}

/// Returns the operand that a fill shifts to a position within its segment. Filling data is the operand plus 100.
private func filled(_ group: LaneGroup, _ position: Int, shift: Int, modulo: Int) -> Int? {
    let inside = position % modulo + shift
    let source = position - position % modulo + (inside + modulo) % modulo
    return group.read(source).map { (0..<modulo).contains(inside) ? $0 : $0 + 100 }
}

/// Returns every function with the prefix `group` ("simd" or "quad"). In the expressions, `x` is the operand and
/// `position` the lane's position.
func laneCases(_ group: String, width: Int) -> [LaneCase] {
    let table: [(String, (LaneGroup, Int) -> Int?)] = [
        ("sum(x)", { g, _ in g.fold(+) }),
        ("product(x % 5 == 0 ? 2 : 1)", { g, _ in g.operands.values.reduce(1) { $1 % 5 == 0 ? 2 * $0 : $0 } }),
        ("min(x)", { g, _ in g.operands.values.min() }),
        ("max(x)", { g, _ in g.operands.values.max() }),
        ("and(x | 64)", { g, _ in g.fold { ($0 | 64) & ($1 | 64) } | 64 }),
        ("or(x)", { g, _ in g.fold(|) }),
        ("xor(x)", { g, _ in g.fold(^) }),
        ("prefix_inclusive_sum(x)", { g, i in g.below(i, orAt: true).reduce(0, +) }),
        ("prefix_exclusive_sum(x)", { g, i in g.below(i, orAt: false).reduce(0, +) }),
        (
            "prefix_inclusive_product(x % 5 == 0 ? 2 : 1)",
            { g, i in g.below(i, orAt: true).reduce(1) { $1 % 5 == 0 ? 2 * $0 : $0 } }
        ),
        (
            "prefix_exclusive_product(x % 5 == 0 ? 2 : 1)",
            { g, i in g.below(i, orAt: false).reduce(1) { $1 % 5 == 0 ? 2 * $0 : $0 } }
        ),
        ("broadcast(x, 1)", { g, _ in g.read(1) }),
        ("broadcast_first(x)", { g, _ in g.read(g.positions[0]) }),
        ("shuffle(x, (position * 5 + 3) % \(width))", { g, i in g.read((i * 5 + 3) % width) }),
        ("shuffle_xor(x, 1)", { g, i in g.read(i ^ 1) }),
        ("shuffle_xor(x, \(width - 1))", { g, i in g.read(i ^ (width - 1)) }),
        ("shuffle_up(x, 1)", { g, i in g.read(i < 1 ? i : i - 1) }),
        ("shuffle_up(x, 3)", { g, i in g.read(i < 3 ? i : i - 3) }),
        ("shuffle_down(x, 1)", { g, i in g.read(i + 1 < width ? i + 1 : i) }),
        ("shuffle_down(x, 3)", { g, i in g.read(i + 3 < width ? i + 3 : i) }),
        ("shuffle_rotate_up(x, 3)", { g, i in g.read((i + width - 3) % width) }),
        ("shuffle_rotate_down(x, 3)", { g, i in g.read((i + 3) % width) }),
        ("shuffle_and_fill_up(x, x + 100, 3)", { g, i in filled(g, i, shift: -3, modulo: width) }),
        ("shuffle_and_fill_down(x, x + 100, 3)", { g, i in filled(g, i, shift: 3, modulo: width) }),
        ("shuffle_and_fill_up(x, x + 100, 1, 2)", { g, i in filled(g, i, shift: -1, modulo: 2) }),
        ("shuffle_and_fill_down(x, x + 100, 1, 2)", { g, i in filled(g, i, shift: 1, modulo: 2) }),
        ("all(x > 20)", { g, _ in g.operands.values.allSatisfy { $0 > 20 } ? 1 : 0 }),
        ("any(x > 90)", { g, _ in g.operands.values.contains { $0 > 90 } ? 1 : 0 }),
        ("is_first()", { g, i in g.positions[0] == i ? 1 : 0 }),
        ("is_helper_thread()", { _, _ in 0 }),
        ("BALLOT(x > 40)", { g, _ in g.mask { $0 > 40 } }),
        ("MASK()", { g, _ in g.mask { _ in true } }),
    ]
    let casts = ["BALLOT": "\(group)_ballot", "MASK": "\(group)_active_threads_mask"]
    return table.map { expression, expected in
        let name = String(expression.prefix { $0 != "(" })
        let call = casts[name].map { "int(uint((\(group)_vote::vote_t)\($0)\(expression.dropFirst(name.count))))" }
        return LaneCase(expression: call ?? "int(\(group)_\(expression))", expected: expected)
    }
}
