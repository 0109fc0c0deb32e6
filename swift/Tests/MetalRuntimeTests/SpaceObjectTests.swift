import MetalRuntime
import XCTest

/// Methods that differ only in the address space of their object, and friend operators with a body for each address
/// space.
final class SpaceObjectTests: CheckerTestCase {
    /// Returns `y[0]` to `y[3]` after a statement of thread 0, where `x`, `t`, `c` and `l` are pairs (1, 2) in device,
    /// threadgroup, constant and thread memory.
    private func numbers(_ declarations: String, _ statement: String) throws -> [Float] {
        let function = try KernelLibrary(
            """
            \(declarations)
            constant Pair program_pair = {1, 2};
            kernel void f(device float *y [[buffer(0)]], device Pair &x [[buffer(1)]], constant Pair &c [[buffer(2)]],
                          uint i [[thread_position_in_grid]]) {
              threadgroup Pair t;
              if (i == 0) { t.a = 1; t.b = 2; }
              threadgroup_barrier(mem_flags::mem_threadgroup);
              Pair l = {1, 2};
              (void)c; (void)l; (void)x;
              if (i == 0) { \(statement) }
            }
            """
        ).function("f")
        let y = TestBuffer([Float](repeating: -1, count: 4)), x = TestBuffer([1, 2] as [Float])
        try function.run([y, x, TestBuffer([1, 2] as [Float])], grid: 4, group: 4)
        return y.array()
    }

    func testMethodsWithABodyForEachSpace() throws {
        let declarations = """
            struct Pair {
              float a, b;
              float sum(float k) const thread { return k + a + b; }
              float sum(float) const device { return 10 + a + b; }
              float sum(float k) const threadgroup { return 20 * k + a + b; }
              float sum(float k) const constant { return 30 + a + b; }
              template <typename T> T get() const thread { return T(a); }
              template <typename T> T get() const device { return T(b); }
            };
            """
        XCTAssertEqual(
            try numbers(declarations, "y[0] = l.sum(1); y[1] = x.sum(1); y[2] = t.sum(1); y[3] = c.sum(1);"),
            [4, 13, 23, 33])
        XCTAssertEqual(
            try numbers(
                declarations,
                "y[0] = program_pair.sum(1); y[1] = l.get<float>(); y[2] = x.get<float>(); y[3] = Pair(x).sum(2);"),
            [33, 1, 2, 5])
    }

    /// Like the operators of a finite field in risc0: objects in device memory are copied to the thread's memory.
    func testOperatorsThatForward() throws {
        XCTAssertEqual(
            try numbers(
                """
                struct Pair {
                  float a, b;
                  constexpr Pair operator+(Pair o) const { return {a + o.a, b + o.b}; }
                  constexpr Pair operator+(Pair o) device const { return Pair(*this) + o; }
                  constexpr Pair operator-() const { return {-a, -b}; }
                  constexpr Pair operator-() device const { return -Pair(*this); }
                  constexpr Pair operator+=(Pair o) { a += o.a; b += o.b; return *this; }
                  constexpr Pair operator+=(Pair o) device { a += 10 * o.a; b += o.b; return *this; }
                  float operator[](uint i) const { return i ? b : a; }
                  float operator[](uint i) device const { return 100 + (i ? b : a); }
                  explicit operator bool() const { return a != 0; }
                  explicit operator bool() device const { return a == 0; }
                };
                """,
                "Pair p = x + l; x += p; l += p; y[0] = x.a; y[1] = (-x)[1] + x[1]; y[2] = l[1]; "
                    + "y[3] = (bool(x) ? 1 : 2) + (bool(l) ? 10 : 20);"), [21, 100, 6, 12])
    }

    func testAssignmentsOfEachSpace() throws {
        XCTAssertEqual(
            try numbers(
                """
                struct Pair {
                  float a, b;
                  thread Pair &operator=(const thread Pair &o) thread { a = o.a; b = o.b; return *this; }
                  thread Pair &operator=(const device Pair &o) thread { a = o.a + 10; b = o.b; return *this; }
                  device Pair &operator=(const thread Pair &o) device { a = o.a + 100; b = o.b; return *this; }
                  device Pair &operator=(const device Pair &o) device { a = o.a + 1000; b = o.b; return *this; }
                  threadgroup Pair &operator=(const thread Pair &o) threadgroup { a = o.a + 5; b = o.b; return *this; }
                };
                """,
                "Pair p; p = l; y[0] = p.a; p = x; y[1] = p.a; x = l; y[2] = x.a; x = x; y[3] = x.a; t = l; "
                    + "y[3] += t.a;"), [1, 11, 101, 1107])
    }

    func testFriendsOfEachSpace() throws {
        XCTAssertEqual(
            try numbers(
                """
                struct Pair {
                  float a, b;
                  friend Pair operator+(const thread Pair &p, const thread Pair &q) { return {p.a + q.a, p.b + q.b}; }
                  friend Pair operator+(const device Pair &p, const thread Pair &q) { return {p.a + q.a + 10, q.b}; }
                  friend thread Pair &operator+=(thread Pair &p, const thread Pair &q) { p.a += q.a; return p; }
                  friend bool operator<(const thread Pair &p, const thread Pair &q) { return p.a < q.a; }
                  float after;
                };
                """,
                "Pair p = l + l; y[0] = p.a; p = x + l; y[1] = p.a; p += l; y[2] = p.a; y[3] = l < p;"),
            [2, 12, 13, 1])
    }

    /// The address space of a pointer precedes the one of its target. Tests `const` members next to others.
    func testTheSpaceOfTheVariableItself() throws {
        XCTAssertEqual(
            try numbers(
                "struct Pair { float a, b; };",
                "thread const device Pair *p[2]; p[0] = &x; const thread device Pair *q = &x; y[0] = p[0]->b + q->a; "
                    + "y[1] = y[2] = y[3] = 0;"), [3, 0, 0, 0])
    }

    /// A method for `device` that copies its object and calls the method for `thread` does not call itself; one that
    /// calls the method of its own object does. `sum` makes the first check, of names, doubt the calls.
    func testForwardingIsNoRecursion() throws {
        let forms = [
            ("Pair copy = *this; return copy OP o;", false), ("Pair copy = *this; return o OP copy;", false),
            ("return Pair(*this) OP o;", false), ("return Pair(o) OP Pair{a, b};", false),
            ("return *this OP o;", true), ("return this->operator OP(o);", true),
        ]
        for name in ["+", "-", "*", "%"] {
            for (form, isRecursion) in forms {
                let declarations = """
                    struct Pair {
                      float a, b;
                      Pair operator \(name)(Pair o) const { return {a * o.b, b + o.a}; }
                      Pair operator \(name)(Pair o) device const { \(form.replacing("OP", with: name)) }
                    };
                    Pair sum(Pair l, Pair m) { return l \(name) m; }
                    """
                let run = { try self.numbers(declarations, "Pair p = x \(name) l; y[0] = p.a; y[1] = sum(p, l).b;") }
                if isRecursion {
                    XCTAssertThrowsError(try run(), "\(name) \(form)") {
                        XCTAssert("\($0)".contains("recursion is not supported"), "\($0)")
                    }
                } else {
                    XCTAssertEqual(Array(try run()[0..<2]), [2, 4], "\(name) \(form)")
                }
            }
        }
    }
}
