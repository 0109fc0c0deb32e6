import XCTest

final class HarnessTests: XCTestCase {
    func testAKernelRuns() throws {
        let library = try KernelLibrary(
            """
            kernel void twice(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], \
            uint i [[thread_position_in_grid]]) {
              y[i] = 2 * x[i];
            }
            """)
        let x = TestBuffer((0..<100).map { Float($0) }), y = TestBuffer(length: 400)
        try library.function("twice").run([x, y], grid: 100, group: 32)
        XCTAssertEqual(y.array(Float.self), (0..<100).map { 2 * Float($0) })
    }
}
