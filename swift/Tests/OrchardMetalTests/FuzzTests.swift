import COrchard
import XCTest

@testable import OrchardMetal

/// Random calls with random handles, sizes, descriptors and orders, from two threads: each returns a status, and all
/// memory is freed.
final class FuzzTests: XCTestCase {
    private static let calls = 20_000

    func testRandomCalls() throws {
        let client = try Client(memoryLimit: 64 << 20, timeout: 10_000)
        let seeds = try Seeds(client)
        DispatchQueue.concurrentPerform(iterations: 2) { thread in
            var fuzzer = Fuzzer(client: client, seeds: seeds, seed: UInt64(thread + 1))
            for _ in 0..<Self.calls / 2 {
                let status = fuzzer.call()
                if !(0...15).contains(status) { XCTFail("status \(status)") }
                XCTAssertNotEqual(status, Int32(bitPattern: ORCHARD_INTERNAL.rawValue), lastError())
            }
            fuzzer.releaseAll()
        }
        try client.finish()
        let statistics = try client.statistics
        XCTAssertEqual(statistics.live_buffers, 0)
        XCTAssertGreaterThan(statistics.dispatches, 100, "some calls are good ones")
        XCTAssertGreaterThan(statistics.errors, 1000, "most are not")
        let findings = try client.report(clear: true)["findings"] as? [[String: Any]] ?? []
        let misuses = findings.filter { $0["kind"] as? String == "misuse" }
        XCTAssertTrue(misuses.isEmpty, "what Metal would abort on was refused before: \(misuses)")
    }

    struct Seeds {
        let library: UInt64
        let pipelines: [UInt64]

        init(_ client: Client) throws {
            let library = try client.library(Kernels.add)
            self.library = library
            pipelines = try ["bump", "add", "reverse"].map { try client.pipeline(library, $0) }
        }
    }
}

private struct Fuzzer {
    let client: Client
    let seeds: FuzzTests.Seeds
    var generator: SplitMix
    var buffers: [UInt64] = []
    var ended: [UInt64] = []
    let memory = UnsafeMutableRawPointer.allocate(byteCount: 1 << 16, alignment: 16)

    init(client: Client, seeds: FuzzTests.Seeds, seed: UInt64) {
        self.client = client
        self.seeds = seeds
        generator = SplitMix(state: seed)
        memory.initializeMemory(as: UInt8.self, repeating: 0, count: 1 << 16)
    }

    private mutating func pick(_ count: Int) -> Int { Int.random(in: 0..<count, using: &generator) }

    private mutating func handle() -> UInt64 {
        switch pick(10) {
        case 0: return UInt64.random(in: 0...UInt64.max, using: &generator)
        case 1: return ended.randomElement(using: &generator) ?? 0
        case 2: return [client.context, seeds.library, 0, seeds.pipelines[0]][pick(4)]
        default: return buffers.randomElement(using: &generator) ?? 0
        }
    }

    private mutating func number() -> UInt64 {
        switch pick(8) {
        case 0: return UInt64.random(in: 0...UInt64.max, using: &generator)
        case 1: return UInt64.max
        case 2: return 0
        default: return UInt64(pick(300))
        }
    }

    private mutating func small() -> UInt32 { UInt32(truncatingIfNeeded: pick(4) == 0 ? number() : UInt64(pick(4))) }

    /// A block in which some bytes are then changed.
    private mutating func damaged<Header: VersionedStruct>(
        _ block: BlockWriter<Header>, _ call: (UnsafePointer<Header>, UInt64) -> Int32
    ) -> Int32 {
        var bytes = block.bytes
        for _ in 0..<(pick(3) == 0 ? pick(6) : 0) { bytes[pick(bytes.count)] = UInt8(pick(256)) }
        memory.copyMemory(from: bytes, byteCount: bytes.count)
        let length = pick(20) == 0 ? UInt64(pick(bytes.count + 1)) : UInt64(bytes.count)
        return call(UnsafePointer(memory.assumingMemoryBound(to: Header.self)), length)
    }

    private mutating func keep(_ status: Int32, _ handle: UInt64) -> Int32 {
        if status == 0 { buffers.append(handle) }
        return status
    }

    mutating func call() -> Int32 {
        switch pick(16) {
        case 0, 1, 2: return create()
        case 3: return release()
        case 4, 5, 6: return dispatch()
        case 7: return orchard_buffer_read(handle(), number(), memory, min(number(), 1 << 16))
        case 8: return orchard_buffer_write(handle(), number(), memory, min(number(), 1 << 16))
        case 9: return orchard_buffer_fill(handle(), number(), number(), small(), nil)
        case 10: return orchard_buffer_copy(handle(), number(), handle(), number(), number(), nil)
        case 11: return orchard_buffer_hint(handle(), small())
        case 12, 13: return view()
        case 14: return [orchard_commit(handleOrContext(), nil), orchard_trim(handleOrContext(), number())][pick(2)]
        default: return orchard_ticket_wait(handleOrContext(), number(), small() % 20)
        }
    }

    private mutating func handleOrContext() -> UInt64 { pick(2) == 0 ? client.context : handle() }

    private mutating func create() -> Int32 {
        var block = BlockWriter<orchard_buffer_options>()
        block.header.length = pick(4) == 0 ? number() : UInt64(128 + pick(5000))
        block.header.storage = small()
        block.header.flags = small() % 3
        block.header.label = block.span(pick(2) == 0 ? "fuzz" : nil)
        var result: UInt64 = 0
        let context = handleOrContext()
        let status = damaged(block) { orchard_buffer_create(context, $0, $1, &result) }
        return keep(status, result)
    }

    private mutating func release() -> Int32 {
        guard pick(2) == 0, !buffers.isEmpty else {
            let stale = ended.randomElement(using: &generator) ?? number()
            return buffers.contains(stale) || seeds.pipelines.contains(stale) || stale == seeds.library
                ? 0 : orchard_release(stale)
        }
        let handle = buffers.remove(at: pick(buffers.count))
        if !buffers.contains(handle) { ended.append(handle) }
        return orchard_release(handle)
    }

    private mutating func dispatch() -> Int32 {
        var block = BlockWriter<orchard_dispatch>()
        block.header.pipeline = pick(8) == 0 ? handle() : seeds.pipelines[pick(3)]
        block.header.grid = (1 + small() % 32, 1, 1)
        block.header.threadgroup = (pick(10) == 0 ? small() : 32, 1, 1)
        let bindings = (0..<3).map { binding(UInt32($0), handle(), 1 + pick(3), offset: pick(4) == 0 ? number() : 0) }
        block.header.bindings = block.span(array: bindings)
        let scale = block.span(Float(1).bytes)
        block.header.inline_bytes = block.span(array: [orchard_inline(index: 3, reserved: 0, bytes: scale)])
        block.header.threadgroup_memory = block.span(array: [orchard_threadgroup_memory(index: 0, length: 128)])
        return damaged(block) { orchard_dispatch_encode($0, $1, nil) }
    }

    private mutating func view() -> Int32 {
        var block = BlockWriter<orchard_view>()
        block.header.buffer = handle()
        block.header.offset = pick(2) == 0 ? 0 : number()
        block.header.element_size = [1, 2, 4, 8, 3][pick(5)]
        block.header.rank = small() % 10
        block.header.storage = small()
        block.header.flags = small() % 3
        block.header.shape.0 = number() % 20
        block.header.shape.1 = number()
        block.header.strides.0 = Int64(bitPattern: number())
        block.header.strides.1 = Int64(pick(9) - 4)
        if pick(3) == 0 {
            let source = handle(), offset = number()
            return damaged(block) { orchard_write_back($0, $1, source, offset, nil) }
        }
        var result = BlockWriter<orchard_materialized>().header
        let status = damaged(block) {
            orchard_materialize($0, $1, &result, UInt64(MemoryLayout<orchard_materialized>.size))
        }
        return keep(status, result.buffer)
    }

    func releaseAll() {
        for buffer in buffers { XCTAssertEqual(orchard_release(buffer), 0) }
        memory.deallocate()
    }
}
