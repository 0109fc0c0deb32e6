import COrchard
import XCTest

@testable import OrchardMetal

final class DispatchTests: XCTestCase {
    func testAKernelRuns() throws {
        let client = try Client()
        let library = try client.library(Kernels.add), add = try client.pipeline(library, "add")
        let a = try client.buffer((0..<100).map { Float($0) }),
            b = try client.buffer((0..<100).map { Float($0) / 2 }, ORCHARD_STORAGE_PRIVATE)
        let sum = try client.buffer(400)
        try client.dispatch(
            add, grid: (100, 1, 1), [binding(0, a, read), binding(1, b, read), binding(2, sum, write)],
            inline: [(3, Float(2).bytes)],
            label: "first")
        XCTAssertEqual(try client.read(sum, 100, of: Float.self), (0..<100).map { Float($0) * 3 })
        XCTAssertEqual(try client.statistics.copies_storage, 0, "a private operand is used without a copy")
    }

    func testThreadgroupMemoryAndGridsOfThreadgroups() throws {
        let client = try Client()
        let reverse = try client.pipeline(client.library(Kernels.add), "reverse")
        let from = try client.buffer((0..<64).map { UInt32($0) }), to = try client.buffer(256)
        try client.dispatch(
            reverse, grid: (1, 1, 1), threadgroup: (64, 1, 1), groups: true,
            [binding(0, from, read), binding(1, to, write)],
            memory: [orchard_threadgroup_memory(index: 0, length: 256)])
        XCTAssertEqual(try client.read(to, 64, of: UInt32.self), (0..<64).reversed().map { UInt32($0) })
    }

    /// Dispatches share an encoder, and lengths stay set on it. Here a kernel that declares 30 KB follows one with 16
    /// KB.
    func testThreadgroupMemoryIsOneDispatchs() throws {
        let client = try Client()
        let source = """
            kernel void own(device uint *y [[buffer(0)]], uint i [[thread_position_in_threadgroup]]) {
              threadgroup uint t[7680];
              for (uint k = i; k < 7680; k += 32) t[k] = k;
              threadgroup_barrier(metal::mem_flags::mem_threadgroup);
              y[i] = t[7679 - i];
            }
            """
        let reverse = try client.pipeline(client.library(Kernels.add), "reverse")
        let own = try client.pipeline(client.library("#include <metal_stdlib>\n" + source), "own")
        let from = try client.buffer((0..<64).map { UInt32($0) }), to = try client.buffer(256)
        let result = try client.buffer(128)
        try client.dispatch(
            reverse, grid: (1, 1, 1), threadgroup: (64, 1, 1), groups: true,
            [binding(0, from, read), binding(1, to, write)],
            memory: [orchard_threadgroup_memory(index: 0, length: 16384)])
        try client.dispatch(own, grid: (32, 1, 1), threadgroup: (32, 1, 1), [binding(0, result, write)])
        XCTAssertEqual(try client.statistics.encoders, 1)
        XCTAssertEqual(try client.read(result, 32, of: UInt32.self), (0..<32).map { UInt32(7679 - $0) })
        XCTAssertEqual(try client.read(to, 64, of: UInt32.self), (0..<64).reversed().map { UInt32($0) })
    }

    func testThirtyDispatchesShareAnEncoderWithoutBarriers() throws {
        let client = try Client()
        let bump = try client.pipeline(client.library(Kernels.add), "bump")
        let buffers = try (0..<30).map { _ in try client.buffer([UInt32](repeating: 0, count: 32)) }
        for buffer in buffers { try client.dispatch(bump, grid: (32, 1, 1), [binding(0, buffer, readWrite)]) }
        let statistics = try client.statistics
        XCTAssertEqual(
            [statistics.dispatches, statistics.encoders, statistics.barriers, statistics.command_buffers],
            [30, 1, 0, 0])
        for buffer in buffers {
            XCTAssertEqual(try client.read(buffer, 32, of: UInt32.self), [UInt32](repeating: 1, count: 32))
        }
    }

    /// Each case: two dispatches on ranges of one buffer, and whether a barrier is needed between them.
    func testBarriersStandOnlyWhereOperandsOverlap() throws {
        let cases: [(name: String, first: (UInt64, UInt64, Int), second: (UInt64, UInt64, Int), barriers: UInt64)] = [
            ("read after write", (0, 64, write), (0, 64, read), 1),
            ("write after read", (0, 64, read), (32, 64, write), 1),
            ("write after write", (0, 128, write), (64, 64, readWrite), 1),
            ("read after read", (0, 128, read), (0, 128, read), 0),
            ("adjacent", (0, 64, write), (64, 64, write), 0),
        ]
        let client = try Client()
        let plain = try client.pipeline(client.library(Self.touch), "touch")
        for entry in cases {
            let buffer = try client.buffer(128, zeroed: true)
            try client.finish()
            let before = try client.statistics.barriers
            for use in [entry.first, entry.second] {
                try client.dispatch(
                    plain, grid: (1, 1, 1), threadgroup: (1, 1, 1),
                    [binding(0, buffer, use.2, offset: use.0, length: use.1)])
            }
            XCTAssertEqual(try client.statistics.barriers - before, entry.barriers, entry.name)
            try client.finish()
        }
    }

    private static let touch = """
        #include <metal_stdlib>
        kernel void touch(device uint *values [[buffer(0)]]) {}
        """

    func testABarrierOrdersAChain() throws {
        let client = try Client(batchOperations: 1000)
        let bump = try client.pipeline(client.library(Kernels.add), "bump")
        let buffer = try client.buffer([UInt32](repeating: 0, count: 32))
        for _ in 0..<50 { try client.dispatch(bump, grid: (32, 1, 1), [binding(0, buffer, readWrite)]) }
        XCTAssertEqual(try client.statistics.barriers, 49)
        XCTAssertEqual(try client.read(buffer, 32, of: UInt32.self), [UInt32](repeating: 50, count: 32))
    }

    func testBlitsEndTheComputeEncoder() throws {
        let client = try Client()
        let bump = try client.pipeline(client.library(Kernels.add), "bump")
        let buffer = try client.buffer(128)
        try check(orchard_buffer_fill(buffer, 0, 128, 0, nil))
        try client.dispatch(bump, grid: (32, 1, 1), [binding(0, buffer, readWrite)])
        try check(orchard_buffer_fill(buffer, 0, 64, 0, nil))
        try client.dispatch(bump, grid: (32, 1, 1), [binding(0, buffer, readWrite)])
        let statistics = try client.statistics
        XCTAssertEqual([statistics.encoders, statistics.barriers, statistics.command_buffers], [4, 0, 0])
        XCTAssertEqual(
            try client.read(buffer, 32, of: UInt32.self),
            [UInt32](repeating: 1, count: 16) + [UInt32](repeating: 2, count: 16))
    }

    // MARK: Refusals

    func testWhatMetalWouldAbortOnIsRefused() throws {
        let client = try Client()
        let library = try client.library(Kernels.add)
        let add = try client.pipeline(library, "add"), reverse = try client.pipeline(library, "reverse")
        let x = try client.buffer(512, label: "x")
        let three = [binding(0, x, read), binding(1, x, read), binding(2, x, write, offset: 256)]
        let scale: [(UInt32, [UInt8])] = [(3, Float(1).bytes)]
        func run(
            of pipeline: UInt64? = nil, grid: (UInt32, UInt32, UInt32) = (8, 1, 1),
            threadgroup: (UInt32, UInt32, UInt32) = (8, 1, 1),
            groups: Bool = false, _ bindings: [orchard_binding]? = nil, inline: [(UInt32, [UInt8])]? = nil,
            memory: [orchard_threadgroup_memory] = []
        ) throws {
            try client.dispatch(
                pipeline ?? add, grid: grid, threadgroup: threadgroup, groups: groups, bindings ?? three,
                inline: inline ?? scale,
                memory: memory)
        }
        assertFails(ORCHARD_INVALID_ARGUMENT, "Kernel 'add': grid [0, 1, 1]") { try run(grid: (0, 1, 1)) }
        assertFails(ORCHARD_INVALID_ARGUMENT, "at least 1") { try run(threadgroup: (8, 0, 1)) }
        assertFails(ORCHARD_LIMIT_EXCEEDED, "2048 threads in x") { try run(threadgroup: (2048, 1, 1)) }
        assertFails(ORCHARD_LIMIT_EXCEEDED, "2048 threads", "limit is 1024") { try run(threadgroup: (64, 32, 1)) }
        assertFails(ORCHARD_LIMIT_EXCEEDED, "2^32") { try run(grid: (.max, 1, 1), groups: true) }
        assertFails(ORCHARD_BINDING_MISSING, "'b' at buffer(1) is used by the kernel, but not bound") {
            try run([three[0], three[2]])
        }
        assertFails(ORCHARD_BINDING_MISSING, "'scale' at buffer(3)") { try run(inline: []) }
        assertFails(ORCHARD_BINDING_MISSING, "'scratch' at threadgroup(0)") {
            try run(of: reverse, [three[0], binding(1, x, write)], inline: [])
        }
        assertFails(ORCHARD_INVALID_ARGUMENT, "bound twice") { try run(three + [three[0]]) }
        assertFails(ORCHARD_LIMIT_EXCEEDED, "buffer(31)") { try run(three + [binding(31, x, read)]) }
        assertFails(ORCHARD_INVALID_ARGUMENT, "access", "got 0") { try run([binding(0, x, 0)]) }
        assertFails(ORCHARD_INVALID_ARGUMENT, "buffer 'x'", "512") {
            try run([binding(0, x, read, offset: 508, length: 8)])
        }
        assertFails(ORCHARD_INVALID_ARGUMENT, "offset 512 is the end") { try run([binding(0, x, read, offset: 512)]) }
        assertFails(ORCHARD_INVALID_ARGUMENT, "offset 2", "multiple of 4") {
            try run([binding(0, x, read, offset: 2), three[1], three[2]])
        }
        assertFails(ORCHARD_INVALID_ARGUMENT, "'scale'", "bound to 2 bytes; its type has 4") {
            try run(inline: [(3, [0, 0])])
        }
        assertFails(ORCHARD_INVALID_ARGUMENT, "empty") { try run(inline: [(3, [])]) }
        assertFails(ORCHARD_LIMIT_EXCEEDED, "4097 inline bytes", "4096") {
            try run(inline: [(3, [UInt8](repeating: 0, count: 4097))])
        }
        assertFails(ORCHARD_WRONG_KIND, "'sum' at buffer(2) is written") {
            try run([three[0], three[1]], inline: scale + [(2, [0, 0, 0, 0])])
        }
        let scratch = { (length: UInt32) in [orchard_threadgroup_memory(index: 0, length: length)] }
        assertFails(ORCHARD_INVALID_ARGUMENT, "multiple of 16", "got 24 bytes") { try run(memory: scratch(24)) }
        assertFails(ORCHARD_LIMIT_EXCEEDED, "32784 bytes of threadgroup memory", "has 32768") {
            try run(memory: scratch(32784))
        }
        let other = try Client()
        assertFails(ORCHARD_INVALID_ARGUMENT, "another context") { try run([binding(0, other.buffer(64), read)]) }
        let statistics = try client.statistics
        XCTAssertEqual([statistics.dispatches, statistics.encoders], [0, 0], "a refused dispatch leaves no trace")
        XCTAssertEqual(statistics.errors, 21)
        try run()
        try client.finish()
    }

    func testAPipelineOfFewerThreadsRefusesMore() throws {
        let client = try Client()
        let bump = try client.pipeline(client.library(Kernels.add), "bump", maxThreads: 64)
        let buffer = try client.buffer(1024)
        assertFails(ORCHARD_LIMIT_EXCEEDED, "128 threads", "limit is 64") {
            try client.dispatch(bump, grid: (128, 1, 1), threadgroup: (128, 1, 1), [binding(0, buffer, readWrite)])
        }
    }

    func testLabelsNest() throws {
        let client = try Client()
        try check(orchard_label_push(client.context, "forward", 7))
        try check(orchard_label_push(client.context, "layer 1", 7))
        let bump = try client.pipeline(client.library(Kernels.add), "bump")
        let buffer = try client.buffer(128, zeroed: true)
        try client.dispatch(bump, grid: (32, 1, 1), [binding(0, buffer, readWrite)], label: "bump")
        try check(orchard_label_pop(client.context))
        try client.finish()
        try check(orchard_label_pop(client.context))
        assertFails(ORCHARD_INVALID_ARGUMENT, "No label") { try check(orchard_label_pop(client.context)) }
    }
}
