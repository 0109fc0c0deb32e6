import COrchard
import XCTest

@testable import OrchardMetal

/// A process that exits while the device is running: each test starts itself again as a child process, and checks how
/// the child ended.
final class ExitTests: XCTestCase {
    /// Counts to `limit` in memory, so that the compiler can't remove the loop.
    private static let slow = """
        #include <metal_stdlib>
        using namespace metal;
        kernel void slow(device atomic_uint *value [[buffer(0)]], constant uint &limit [[buffer(1)]]) {
            for (uint i = 0; i < limit; i++) atomic_fetch_add_explicit(value, 1u, memory_order_relaxed);
        }
        """

    private func leaveWorkInFlight(steps: UInt32) throws -> Never {
        let client = try Client(batchOperations: 1)
        let pipeline = try client.pipeline(client.library(Self.slow), "slow")
        let value = try client.buffer(4, zeroed: true)
        for _ in 0..<4 {
            try client.dispatch(
                pipeline, grid: (1, 1, 1), threadgroup: (1, 1, 1), [binding(0, value, readWrite)],
                inline: [(1, withUnsafeBytes(of: steps, Array.init))])
        }
        print("work is in flight")
        exit(0)
    }

    private func assertEndsCleanly(steps: UInt32, test: String, within seconds: TimeInterval) throws {
        if ChildTest.argument != nil { try leaveWorkInFlight(steps: steps) }
        let child = try ChildTest("ExitTests/\(test)", argument: "1")
        XCTAssertTrue(child.ends(within: seconds), "the child hangs")
        XCTAssertTrue(child.output.contains("work is in flight"), child.output)
        XCTAssertTrue(child.endedWell)
    }

    func testShortWorkIsWaitedFor() throws {
        try assertEndsCleanly(steps: 10_000, test: "testShortWorkIsWaitedFor", within: 60)
    }

    func testLongWorkIsLeft() throws {
        try assertEndsCleanly(steps: 4_000_000_000, test: "testLongWorkIsLeft", within: 60)
    }
}
